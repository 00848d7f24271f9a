// SPDX-License-Identifier: MIT

//go:build libtwheel

package twheel

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func openTable(t *testing.T, nr uint32, o *TableOptions) *Table {
	t.Helper()
	table, err := OpenTable(nr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func is(t *testing.T, want State) func(State, error) {
	return func(got State, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%v, %v and not %v", got, err, want)
		}
	}
}

// fetchNow fetches what has expired, without waiting.
func fetchNow(t *testing.T, table *Table) []uint32 {
	t.Helper()
	numbers := make([]uint32, 256)
	n, err := table.fetch(numbers)
	must(t, err)
	return numbers[:n]
}

// The rules are the same in the process and on the device.
func followsTheRules(t *testing.T, o TableOptions) {
	o.Clock = Virtual
	table := openTable(t, 10, &o)
	is(t, Idle)(table.Start(3, 5e6))
	is(t, Pending)(table.Start(3, 6e6))
	if now, deadline, err := table.State(3); now != Pending || deadline != 6e6 || err != nil {
		t.Error(now, deadline, err)
	}
	must(t, table.Advance(5e6))
	if table.Now() != 5e6 {
		t.Error(table.Now())
	}
	if numbers := fetchNow(t, table); len(numbers) != 0 {
		t.Error(numbers)
	}
	is(t, Idle)(table.StartAfter(4, ms))
	must(t, table.Advance(6e6))
	is(t, Unread)(table.Stop(4))
	if now, deadline, err := table.State(3); now != Unread || deadline != Never || err != nil {
		t.Error(now, deadline, err)
	}
	if numbers := fetchNow(t, table); len(numbers) != 1 || numbers[0] != 3 {
		t.Error(numbers)
	}
	is(t, Idle)(table.Stop(3))
	if _, err := table.Start(10, 5); !errors.Is(err, syscall.ERANGE) {
		t.Error(err)
	}

	changes := []Change{{Number: 1, DeadlineNs: 9e6}, {Number: 10, DeadlineNs: 9e6},
		{Number: 1, DeadlineNs: Never}, {Number: 2, DeadlineNs: 0}}
	if n, err := table.Apply(changes); n != 3 || err != nil {
		t.Error(n, err)
	}
	is(t, Idle)(changes[0].Result())
	if _, err := changes[1].Result(); !errors.Is(err, syscall.ERANGE) {
		t.Error(err)
	}
	is(t, Pending)(changes[2].Result())
	must(t, table.Advance(6e6))
	if numbers := fetchNow(t, table); len(numbers) != 1 || numbers[0] != 2 {
		t.Error(numbers)
	}
	if n, err := table.ApplyAfter([]Change{{Number: 5, DeadlineNs: 1e6}}); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, deadline, _ := table.State(5); deadline != 7e6 {
		t.Error(deadline)
	}
	if n, err := table.Apply(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestTableFollowsTheRulesInTheProcess(t *testing.T) {
	followsTheRules(t, TableOptions{})
}

func TestDeviceTableFollowsTheSameRules(t *testing.T) {
	needsDevice(t)
	followsTheRules(t, TableOptions{Device: true})
}

func TestTableWakesAGoroutineInTime(t *testing.T) {
	table := openTable(t, 10, nil)
	began := time.Now()
	fetched := make(chan string)
	go func() {
		var numbers [10]uint32
		n, err := table.Expired(numbers[:])
		fetched <- fmt.Sprint(numbers[:n], err)
	}()
	time.Sleep(10 * ms)
	is(t, Idle)(table.StartAfter(1, time.Minute))
	is(t, Idle)(table.StartAfter(2, 30*ms))
	if got := <-fetched; got != "[2] <nil>" {
		t.Error(got)
	}
	if elapsed := time.Since(began); elapsed < 40*ms || elapsed > 30*time.Second {
		t.Error(elapsed)
	}
}

func TestTableEndsAWaitAtItsDeadlineAndWhenItIsClosed(t *testing.T) {
	table := openTable(t, 10, nil)
	var numbers [10]uint32
	must(t, table.SetReadDeadline(time.Now().Add(20*ms)))
	if _, err := table.Expired(numbers[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	must(t, table.SetReadDeadline(time.Time{}))
	ended := make(chan error)
	go func() {
		_, err := table.Expired(numbers[:])
		ended <- err
	}()
	time.Sleep(20 * ms)
	must(t, table.Close())
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	for _, err := range []error{
		table.Close(),
		func() error { _, err := table.Start(1, 0); return err }(),
		func() error { _, err := table.StartAfter(1, 0); return err }(),
		func() error { _, err := table.Stop(1); return err }(),
		func() error { _, err := table.Apply([]Change{{}}); return err }(),
		func() error { _, err := table.Expired(numbers[:]); return err }(),
		func() error { _, _, err := table.State(1); return err }(),
		table.Advance(1),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	if table.Now() != 0 {
		t.Error(table.Now())
	}
}

func TestTableMayBeClosedWhileGoroutinesUseIt(t *testing.T) {
	for i := 0; i < 50; i++ {
		table := openTable(t, 100, nil)
		var users sync.WaitGroup
		for user := uint32(0); user < 4; user++ {
			users.Add(1)
			go func(user uint32) {
				defer users.Done()
				var numbers [4]uint32
				for {
					// Who has fetched the number of another may wait until the end.
					_, err := table.StartAfter(user, 0)
					if err == nil {
						_, err = table.Expired(numbers[:])
					}
					if err != nil {
						if !errors.Is(err, os.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			}(user)
		}
		time.Sleep(2 * ms)
		must(t, table.Close())
		users.Wait()
	}
}

func TestTableRefusesOptionsOutOfRangeAndOtherFiles(t *testing.T) {
	if table, err := OpenTable(0, nil); !errors.Is(err, syscall.EINVAL) {
		t.Error(table, err)
	}
	null, err := os.Open("/dev/null")
	must(t, err)
	defer null.Close()
	if table, err := OpenTable(1, &TableOptions{File: null}); !errors.Is(err, syscall.ENOTTY) {
		t.Error(table, err)
	}
	table := openTable(t, 1, &TableOptions{Clock: Realtime})
	if _, err := table.StartAfter(0, ms); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if err := table.Advance(1); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
	if _, err := table.Expired(nil); err == nil {
		t.Error("no room, and no error")
	}
}

func TestTableGivesEachStartOneOutcome(t *testing.T) {
	const starts = 20000
	table := openTable(t, 4*64, nil)
	var stopped, fetched int64
	var starters sync.WaitGroup
	for i := uint32(0); i < 4; i++ {
		starters.Add(1)
		go func(first uint32) {
			defer starters.Done()
			for i := uint32(0); i < starts; i++ {
				number := first + i%64
				was, err := table.Stop(number)
				if err != nil {
					t.Error(err)
				}
				if was != Idle {
					atomic.AddInt64(&stopped, 1)
				}
				if _, err := table.StartAfter(number, time.Duration(i%3000)*time.Microsecond); err != nil {
					t.Error(err)
				}
			}
		}(i * 64)
	}
	var fetchers sync.WaitGroup
	for i := 0; i < 2; i++ {
		fetchers.Add(1)
		go func() {
			defer fetchers.Done()
			var numbers [32]uint32
			for {
				n, err := table.Expired(numbers[:])
				if err != nil {
					return
				}
				atomic.AddInt64(&fetched, int64(n))
			}
		}()
	}
	starters.Wait()
	must(t, table.SetReadDeadline(time.Now().Add(50*ms)))
	fetchers.Wait()
	if sum := stopped + fetched; sum != 4*starts {
		t.Error(stopped, fetched)
	}
}

func TestDeviceTableIsTakenOverWithAllThatPends(t *testing.T) {
	needsDevice(t)
	table := openTable(t, 10, &TableOptions{Device: true})
	is(t, Idle)(table.StartAfter(3, 30*ms))
	other := openTable(t, 10, &TableOptions{File: table.File()})
	is(t, Pending)(func() (State, error) { s, _, err := other.State(3); return s, err }())
	must(t, table.Close())
	var numbers [10]uint32
	if n, err := other.Expired(numbers[:]); n != 1 || numbers[0] != 3 || err != nil {
		t.Error(n, numbers, err)
	}
}

type tableTimers struct {
	*Table
	numbers [256]uint32
}

func (table *tableTimers) change(changes []change) error {
	var all []Change
	for _, c := range changes {
		if c.d < 0 {
			all = append(all, Change{Number: c.number, DeadlineNs: Never})
		} else {
			all = append(all, Change{Number: c.number, DeadlineNs: uint64(c.d)})
		}
	}
	n, err := table.ApplyAfter(all)
	if err == nil && n != len(all) {
		err = fmt.Errorf("%d of %d changes were made", n, len(all))
	}
	for i := range all {
		was, failed := all[i].Result()
		if changes[i].d < 0 && (failed != nil || was == Idle) {
			err = fmt.Errorf("%d was not cancelled", all[i].Number)
		}
	}
	return err
}

func (table *tableTimers) receive() ([]uint32, error) {
	n, err := table.Expired(table.numbers[:])
	return table.numbers[:n], err
}

func TestTableHasExactAccountsOfTenThousandTimeouts(t *testing.T) {
	accept(t, &tableTimers{Table: openTable(t, timeouts, nil)})
}

func TestDeviceTableHasExactAccountsOfTenThousandTimeouts(t *testing.T) {
	needsDevice(t)
	accept(t, &tableTimers{Table: openTable(t, timeouts, &TableOptions{Device: true})})
}
