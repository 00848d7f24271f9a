// SPDX-License-Identifier: MIT

package twheel

import (
	"errors"
	"os"
	"testing"
	"time"
)

// 10,000 timeouts: 5,000 are cancelled, 2,500 are moved, and a goroutine receives all others.
const timeouts = 10000

// change is a timeout to start, to move, or, if d is negative, to cancel.
type change struct {
	number uint32
	d      time.Duration
}

// timers is what the acceptance is for.
type timers interface {
	// change makes changes.
	change(changes []change) error
	// receive waits for what has expired, until the deadline.
	receive() ([]uint32, error)
	SetReadDeadline(t time.Time) error
}

// A goroutine receives: what comes, with the time of each.
type arrival struct {
	number uint32
	at     time.Time
}

func receiver(timers timers, arrivals chan<- arrival, ended chan<- error) {
	for {
		numbers, err := timers.receive()
		now := time.Now()
		for _, number := range numbers {
			arrivals <- arrival{number, now}
		}
		if err != nil {
			ended <- err
			return
		}
	}
}

// Some of all numbers, changed 256 at a time.
func changeSome(t *testing.T, timers timers, deadlines []time.Time, some func(i uint32) bool,
	delay func(i uint32) time.Duration) int {
	var changes []change
	now := time.Now()
	for i := uint32(0); i < timeouts; i++ {
		if some(i) {
			changes = append(changes, change{i, delay(i)})
			deadlines[i] = time.Time{}
			if delay(i) >= 0 {
				deadlines[i] = now.Add(delay(i))
			}
		}
	}
	for first := 0; first < len(changes); first += 256 {
		last := first + 256
		if last > len(changes) {
			last = len(changes)
		}
		if err := timers.change(changes[first:last]); err != nil {
			t.Fatal(err)
		}
	}
	return len(changes)
}

func accept(t *testing.T, timers timers) {
	deadlines := make([]time.Time, timeouts)
	arrivals, ended := make(chan arrival, timeouts), make(chan error, 1)
	delay := func(i uint32) time.Duration {
		return time.Duration(50+i*7919%500) * ms
	}

	started := changeSome(t, timers, deadlines, func(i uint32) bool { return true }, delay)
	cancelled := changeSome(t, timers, deadlines, func(i uint32) bool { return i%2 == 0 },
		func(uint32) time.Duration { return -1 })
	moved := changeSome(t, timers, deadlines, func(i uint32) bool { return i%4 == 1 },
		func(i uint32) time.Duration { return delay(i)/2 + 300*ms })
	if started != 10000 || cancelled != 5000 || moved != 2500 {
		t.Fatal(started, cancelled, moved)
	}

	// From now on: what has been received cannot be cancelled.
	go receiver(timers, arrivals, ended)
	for i := cancelled; i < started; i++ {
		a := <-arrivals
		if deadlines[a.number].IsZero() {
			t.Fatalf("nobody waits for %d", a.number)
		}
		if a.at.Before(deadlines[a.number]) {
			t.Errorf("%d is early", a.number)
		}
		deadlines[a.number] = time.Time{}
	}
	// And nothing more comes.
	timers.SetReadDeadline(time.Now().Add(600 * ms))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if len(arrivals) != 0 {
		t.Errorf("%d more have come", len(arrivals))
	}
}

type wheelTimers struct {
	*Wheel
	batch   Batch
	events  [64]Event
	numbers []uint32
}

func (w *wheelTimers) change(changes []change) error {
	for _, c := range changes {
		if c.d < 0 {
			w.batch.Cancel(uint64(c.number))
		} else {
			w.batch.Arm(uint64(c.number), c.d)
		}
	}
	return w.Apply(&w.batch)
}

func (w *wheelTimers) receive() ([]uint32, error) {
	n, err := w.Read(w.events[:])
	w.numbers = w.numbers[:0]
	for _, e := range w.events[:n] {
		w.numbers = append(w.numbers, uint32(e.Key))
	}
	return w.numbers, err
}

func TestDeviceHasExactAccountsOfTenThousandTimeouts(t *testing.T) {
	accept(t, &wheelTimers{Wheel: openWheel(t, nil)})
}
