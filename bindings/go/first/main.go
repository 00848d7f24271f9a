// SPDX-License-Identifier: MIT

//go:build libtwheel

// The first program: requests, one of which gets no answer.
package main

import (
	"fmt"
	"log"
	"time"

	"twheel"
)

func main() {
	table, err := twheel.OpenTable(10000, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()

	// Ten requests by one call; the answers to all but one come.
	changes := make([]twheel.Change, 10)
	for i := range changes {
		changes[i] = twheel.Change{Number: uint32(i), DeadlineNs: uint64(50 * time.Millisecond)}
	}
	if _, err := table.ApplyAfter(changes); err != nil {
		log.Fatal(err)
	}
	for i := range changes {
		if i != 7 {
			table.Stop(uint32(i))
		}
	}

	// The goroutine is parked until something has expired.
	numbers := make([]uint32, 256)
	n, err := table.Expired(numbers)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("no answer:", numbers[:n])
}
