// SPDX-License-Identifier: MIT

package twheel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

const ms = time.Millisecond

// needsDevice skips a test if the module is not there.
func needsDevice(t *testing.T) {
	if _, err := os.Stat("/dev/twheel"); err != nil {
		t.Skip("there is no /dev/twheel")
	}
}

func openWheel(t *testing.T, o *Options) *Wheel {
	t.Helper()
	needsDevice(t)
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// readKeys reads until that many events have come.
func readKeys(t *testing.T, w *Wheel, nr int) (keys []uint64) {
	t.Helper()
	var events [64]Event
	for len(keys) < nr {
		n, err := w.Read(events[:])
		must(t, err)
		for _, e := range events[:n] {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// The compiler of C compares layouts and values with <linux/twheel.h>, which TWHEEL_INCLUDE has.
func TestRecordsAndEventsAreThoseOfTheHeader(t *testing.T) {
	include := os.Getenv("TWHEEL_INCLUDE")
	if include == "" {
		t.Skip("TWHEEL_INCLUDE does not say where linux/twheel.h is")
	}
	var r record
	var s setupRecord
	var e Event
	program := "#include <stddef.h>\n#include <linux/twheel.h>\n"
	for _, equal := range []struct {
		c     string
		value uintptr
	}{
		{"sizeof(struct twheel_record)", unsafe.Sizeof(r)},
		{"offsetof(struct twheel_record, op)", unsafe.Offsetof(r.op)},
		{"offsetof(struct twheel_record, flags)", unsafe.Offsetof(r.flags)},
		{"offsetof(struct twheel_record, key)", unsafe.Offsetof(r.key)},
		{"offsetof(struct twheel_record, expires_ns)", unsafe.Offsetof(r.expiresNs)},
		{"offsetof(struct twheel_record, interval_ns)", unsafe.Offsetof(r.intervalNs)},
		{"offsetof(struct twheel_record, repeats)", unsafe.Offsetof(r.repeats)},
		{"offsetof(struct twheel_record, slack_ticks)", unsafe.Offsetof(r.slackTicks)},
		{"sizeof(struct twheel_setup_record)", unsafe.Sizeof(s)},
		{"offsetof(struct twheel_setup_record, op)", unsafe.Offsetof(s.op)},
		{"offsetof(struct twheel_setup_record, flags)", unsafe.Offsetof(s.flags)},
		{"offsetof(struct twheel_setup_record, clock)", unsafe.Offsetof(s.clock)},
		{"offsetof(struct twheel_setup_record, event_size)", unsafe.Offsetof(s.eventSize)},
		{"offsetof(struct twheel_setup_record, tick_ns)", unsafe.Offsetof(s.tickNs)},
		{"offsetof(struct twheel_setup_record, slack_ns)", unsafe.Offsetof(s.slackNs)},
		{"offsetof(struct twheel_setup_record, slots)", unsafe.Offsetof(s.slots)},
		{"offsetof(struct twheel_setup_record, max_pending)", unsafe.Offsetof(s.maxPending)},
		{"sizeof(struct twheel_event)", unsafe.Sizeof(e)},
		{"offsetof(struct twheel_event, id)", unsafe.Offsetof(e.ID)},
		{"offsetof(struct twheel_event, user_data)", unsafe.Offsetof(e.Key)},
		{"offsetof(struct twheel_event, deadline_ns)", unsafe.Offsetof(e.DeadlineNs)},
		{"offsetof(struct twheel_event, fired_ns)", unsafe.Offsetof(e.FiredNs)},
		{"offsetof(struct twheel_event, count)", unsafe.Offsetof(e.Count)},
		{"offsetof(struct twheel_event, flags)", unsafe.Offsetof(e.flags)},
		{"TWHEEL_OP_ARM", opArm},
		{"TWHEEL_OP_CANCEL", opCancel},
		{"TWHEEL_OP_SETUP", opSetup},
		{"TWHEEL_CLOCK_MONOTONIC", clockMonotonic + uintptr(Monotonic)},
		{"TWHEEL_CLOCK_BOOTTIME", clockMonotonic + uintptr(Boottime)},
		{"TWHEEL_CLOCK_REALTIME", clockMonotonic + uintptr(Realtime)},
		{"TWHEEL_CLOCK_TAI", clockMonotonic + uintptr(TAI)},
		{"TWHEEL_SETUP_KEYED", setupKeyed},
		{"TWHEEL_ARM_ABSOLUTE", armAbsolute},
		{"TWHEEL_RECORD_ABSENT_OK", absentOK},
		{"TWHEEL_TIME_NEVER >> 32", timeNever >> 32},
		{"(__u32)TWHEEL_TIME_NEVER", timeNever & 0xffffffff},
		{"TWHEEL_EVENT_DRAINED", eventDrained},
		{"TWHEEL_EVENT_ENDED", eventEnded},
	} {
		program += fmt.Sprintf("_Static_assert(%s == %d, \"%[1]s\");\n", equal.c, equal.value)
	}
	source := filepath.Join(t.TempDir(), "header.c")
	must(t, os.WriteFile(source, []byte(program), 0o600))
	said, err := exec.Command("cc", "-std=c11", "-fsyntax-only", "-I"+include, source).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

func TestABatchCountsItsRecordsAndForgetsThem(t *testing.T) {
	var b Batch
	b.Arm(1, -5)
	b.ArmAt(2, 1<<63)
	b.ArmEvery(3, ms)
	b.Cancel(4)
	if b.Len() != 4 || b.records[0].expiresNs != 0 || b.records[1].expiresNs != timeNever {
		t.Error(b)
	}
	b.Reset()
	if b.Len() != 0 {
		t.Error(b)
	}
}

func TestDeviceKeyExpiresOnceAndNotBeforeItsDeadline(t *testing.T) {
	w := openWheel(t, nil)
	began := time.Now()
	must(t, w.Arm(1<<64-1, 30*ms))
	var events [8]Event
	n, err := w.Read(events[:])
	must(t, err)
	e := &events[0]
	if n != 1 || e.Key != 1<<64-1 || e.Count != 1 || !e.Last() || e.Drained() || e.Late() < 0 {
		t.Error(n, events)
	}
	if elapsed := time.Since(began); elapsed < 30*ms {
		t.Error("early:", elapsed)
	}
}

func TestDeviceKeyThatIsArmedAgainMovesAndOneThatIsCancelledDoesNotCome(t *testing.T) {
	w := openWheel(t, nil)
	var b Batch
	b.Arm(1, 10*ms)
	b.Arm(2, 20*ms)
	b.Arm(3, 30*ms)
	b.Arm(1, 40*ms)
	b.Cancel(2)
	b.Cancel(99)
	must(t, w.Apply(&b))
	if b.Len() != 0 {
		t.Error("the batch is not empty")
	}
	if keys := readKeys(t, w, 2); keys[0] != 3 || keys[1] != 1 {
		t.Error(keys)
	}
	must(t, w.Cancel(1))
	must(t, w.Apply(&b))
}

func TestDeviceRecordThatIsRefusedStaysFirstInItsBatch(t *testing.T) {
	w := openWheel(t, &Options{Clock: Realtime})
	var b Batch
	b.ArmAt(1, 5)
	// A distance from now is refused on a clock that can be set.
	b.Arm(2, ms)
	b.ArmAt(3, 5)
	if err := w.Apply(&b); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if b.Len() != 2 || b.records[0].key != 2 || b.records[1].key != 3 {
		t.Error(b)
	}
	if keys := readKeys(t, w, 1); keys[0] != 1 {
		t.Error(keys)
	}
}

func TestDeviceWaitsForAPlaceIfAllAreInUse(t *testing.T) {
	w := openWheel(t, &Options{MaxPending: 2})
	applied := make(chan error)
	go func() {
		var b Batch
		for key := uint64(1); key <= 4; key++ {
			b.Arm(key, 20*ms)
		}
		applied <- w.Apply(&b)
	}()
	seen := map[uint64]bool{}
	for _, key := range readKeys(t, w, 4) {
		seen[key] = true
	}
	must(t, <-applied)
	if len(seen) != 4 {
		t.Error(seen)
	}
	// And no longer than to its deadline.
	must(t, w.Arm(1, time.Hour))
	must(t, w.Arm(2, time.Hour))
	must(t, w.SetWriteDeadline(time.Now().Add(20*ms)))
	if err := w.Arm(3, ms); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestDeviceReadEndsAtItsDeadlineAndWhenTheWheelIsClosed(t *testing.T) {
	w := openWheel(t, nil)
	var events [8]Event
	must(t, w.SetReadDeadline(time.Now().Add(20*ms)))
	if _, err := w.Read(events[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	must(t, w.SetReadDeadline(time.Time{}))
	ended := make(chan error)
	go func() {
		_, err := w.Read(events[:])
		ended <- err
	}()
	time.Sleep(20 * ms)
	must(t, w.Close())
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if err := w.Arm(1, ms); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestDevicePeriodicKeyCountsItsPeriods(t *testing.T) {
	w := openWheel(t, nil)
	var b Batch
	b.ArmEvery(1, 5*ms)
	must(t, w.Apply(&b))
	var events [8]Event
	for count := uint32(0); count < 10; {
		n, err := w.Read(events[:])
		must(t, err)
		for _, e := range events[:n] {
			count += e.Count
			if e.Last() {
				t.Error(e)
			}
		}
	}
	must(t, w.Cancel(1))
}

func TestDeviceRefusesOptionsOutOfRangeAndEmptySlices(t *testing.T) {
	w := openWheel(t, nil)
	for _, o := range []Options{{Tick: 1}, {Clock: Virtual}, {Slack: 2 * time.Hour}} {
		if w, err := Open(&o); !errors.Is(err, syscall.EINVAL) {
			t.Error(o, w, err)
		}
	}
	if _, err := w.Read(nil); err == nil || err == io.EOF {
		t.Error(err)
	}
}

func TestDeviceDuplicateOfTheFileIsTheSameWheel(t *testing.T) {
	w := openWheel(t, nil)
	conn, err := w.File().SyscallConn()
	must(t, err)
	var fd int
	must(t, conn.Control(func(own uintptr) { fd, err = syscall.Dup(int(own)) }))
	must(t, err)
	other := Adopt(os.NewFile(uintptr(fd), "other"))
	defer other.Close()
	must(t, w.Arm(7, 20*ms))
	must(t, w.Close())
	must(t, other.SetReadDeadline(time.Now().Add(10*time.Second)))
	if keys := readKeys(t, other, 1); keys[0] != 7 {
		t.Error(keys)
	}
}

func TestDeviceGoroutinesReadEachEventOnce(t *testing.T) {
	const nr = 2000
	w := openWheel(t, nil)
	received := make(chan uint64, nr)
	var readers, writers sync.WaitGroup
	for i := 0; i < 3; i++ {
		readers.Add(1)
		go func() {
			defer readers.Done()
			var events [32]Event
			for {
				n, err := w.Read(events[:])
				if err != nil {
					return
				}
				for _, e := range events[:n] {
					received <- e.Key
				}
			}
		}()
	}
	for i := uint64(0); i < 2; i++ {
		writers.Add(1)
		go func(first uint64) {
			defer writers.Done()
			var b Batch
			for key := first; key < nr; key += 2 {
				b.Arm(key, time.Duration(key*37%50)*ms)
				if b.Len() == 100 {
					if err := w.Apply(&b); err != nil {
						t.Error(err)
					}
				}
			}
		}(i)
	}
	writers.Wait()
	seen := map[uint64]int{}
	for i := 0; i < nr; i++ {
		seen[<-received]++
	}
	must(t, w.Close())
	readers.Wait()
	if len(seen) != nr || len(received) != 0 {
		t.Error(len(seen), len(received))
	}
}
