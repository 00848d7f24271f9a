// SPDX-License-Identifier: 0BSD

// The smallest program in Go: records and events by an os.File. Its Read parks the goroutine,
// and the runtime's epoll wakes it up.
package main

import (
	"fmt"
	"log"
	"os"
	"unsafe"
)

// Values and structures of <linux/twheel.h>
const (
	opArm          = 1
	opSetup        = 4
	clockMonotonic = 0x101
)

type setupRecord struct {
	op, flags, clock, eventSize uint32
	tickNs, slackNs             uint64
	slots, maxPending           uint32
}

type record struct {
	op, flags                  uint32
	key, expiresNs, intervalNs uint64
	repeats, slackTicks        uint32
}

type event struct {
	id, userData, deadlineNs, firedNs uint64
	count, flags                      uint32
}

func bytes[T any](t *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(t)), unsafe.Sizeof(*t))
}

func main() {
	wheel, err := os.OpenFile("/dev/twheel", os.O_RDWR, 0)
	if err != nil {
		log.Fatal(err)
	}
	setup := setupRecord{op: opSetup, clock: clockMonotonic, tickNs: 1000000}
	arm := record{op: opArm, key: 42, expiresNs: 100000000}
	for _, bytes := range [][]byte{bytes(&setup), bytes(&arm)} {
		if _, err := wheel.Write(bytes); err != nil {
			log.Fatal(err)
		}
	}
	var e event
	if _, err := wheel.Read(bytes(&e)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("timeout %d has expired, %d us after its deadline\n", e.userData,
		(e.firedNs-e.deadlineNs)/1000)
}
