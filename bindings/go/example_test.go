// SPDX-License-Identifier: MIT

package twheel_test

import (
	"fmt"
	"log"
	"time"

	"twheel"
)

func ExampleWheel() {
	wheel, err := twheel.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	var batch twheel.Batch
	batch.Arm(17, 30*time.Second) // moves the timeout if there is one with this key
	batch.Cancel(18)
	if err := wheel.Apply(&batch); err != nil {
		log.Fatal(err)
	}
	var events [64]twheel.Event
	n, err := wheel.Read(events[:])
	for _, event := range events[:n] {
		fmt.Println(event.Key, "has expired, late by", event.Late())
	}
	if err != nil {
		log.Fatal(err)
	}
}
