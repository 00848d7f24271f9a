// SPDX-License-Identifier: MIT

// Package twheel has timeouts for programs with many of them: a Wheel is on the device
// /dev/twheel, and needs neither cgo nor a library.  With the build tag libtwheel there is a Table
// as well, by cgo: in the process, or on the device.
package twheel

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Clock is the clock of a wheel or of a table.
type Clock uint32

// The clocks.  Realtime and TAI can be set: their deadlines are points in time, see Batch.ArmAt.
// Virtual begins at 0 and moves by Table.Advance only.
const (
	Monotonic Clock = iota
	Boottime
	Realtime
	TAI
	Virtual
)

// Options say how a wheel is to be; the zero value of each is the default.
type Options struct {
	Clock      Clock         // Virtual is for tables
	Tick       time.Duration // timeouts expire at its multiples; 1 us to 1 h, 1 ms by default
	Slack      time.Duration // how much later the kernel may look at a timeout
	MaxPending uint32        // how many timeouts may be in use at a time, 2^20 by default
}

// Values of <linux/twheel.h>
const (
	opArm    = 1
	opCancel = 3
	opSetup  = 4

	clockMonotonic = 0x101
	setupKeyed     = 1 << 1
	armAbsolute    = 1 << 0
	absentOK       = 1 << 16
	timeNever      = 1<<63 - 1
	eventDrained   = 1 << 0
	eventEnded     = 1 << 1
)

// struct twheel_setup_record
type setupRecord struct {
	op, flags, clock, eventSize uint32
	tickNs, slackNs             uint64
	slots, maxPending           uint32
}

// struct twheel_record
type record struct {
	op, flags                  uint32
	key, expiresNs, intervalNs uint64
	repeats, slackTicks        uint32
}

const recordSize = int(unsafe.Sizeof(record{}))

// Event is a timeout that has expired.  It is laid out as struct twheel_event.
type Event struct {
	ID         uint64 // the kernel's name of the timeout
	Key        uint64
	DeadlineNs uint64 // as it was asked for
	FiredNs    uint64 // when the kernel found it expired
	Count      uint32 // how often, since the last event
	flags      uint32
}

const eventSize = int(unsafe.Sizeof(Event{}))

// Drained says whether the wheel was drained before the timeout had expired.
func (e *Event) Drained() bool {
	return e.flags&eventDrained != 0
}

// Last says whether this is the last event of the timeout.
func (e *Event) Last() bool {
	return e.flags&eventEnded != 0
}

// Late is how much later than its deadline the timeout has expired.
func (e *Event) Late() time.Duration {
	return time.Duration(e.FiredNs - e.DeadlineNs)
}

// Batch is records that are written at a time.  The zero value is an empty one.
type Batch struct {
	records []record
}

func nanoseconds(d time.Duration) uint64 {
	if d < 0 {
		return 0
	}
	return uint64(d)
}

// Arm adds a timeout, counted from the call of Apply on.  If there is one with this key, it is
// moved.
func (b *Batch) Arm(key uint64, d time.Duration) {
	b.records = append(b.records, record{op: opArm, key: key, expiresNs: nanoseconds(d)})
}

// ArmAt does the same, by the time on the wheel's clock.
func (b *Batch) ArmAt(key, deadlineNs uint64) {
	if deadlineNs > timeNever {
		deadlineNs = timeNever
	}
	b.records = append(b.records, record{op: opArm, flags: armAbsolute, key: key,
		expiresNs: deadlineNs})
}

// ArmEvery adds a timeout that expires again and again, at a fixed rate.
func (b *Batch) ArmEvery(key uint64, interval time.Duration) {
	ns := nanoseconds(interval)
	b.records = append(b.records, record{op: opArm, key: key, expiresNs: ns, intervalNs: ns})
}

// Cancel adds a cancellation.  If the timeout has ended already, nothing is done.
func (b *Batch) Cancel(key uint64) {
	b.records = append(b.records, record{op: opCancel, flags: absentOK, key: key})
}

// Len is how many records there are.
func (b *Batch) Len() int {
	return len(b.records)
}

// Reset forgets the records.
func (b *Batch) Reset() {
	b.records = b.records[:0]
}

// Wheel is a wheel of the device.  Its timeouts have keys, numbers that the program chooses.  Any
// goroutine may use it at any time, and so may any process that has its descriptor.  A goroutine
// that waits is parked, and blocks no thread.
type Wheel struct {
	file *os.File
}

// Open opens the device, and sets a new wheel up; nil is the defaults.
func Open(o *Options) (*Wheel, error) {
	if o == nil {
		o = &Options{}
	}
	if o.Clock >= Virtual {
		return nil, os.NewSyscallError("setup", syscall.EINVAL)
	}
	file, err := os.OpenFile("/dev/twheel", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	setup := setupRecord{op: opSetup, flags: setupKeyed, clock: clockMonotonic + uint32(o.Clock),
		eventSize: uint32(eventSize), tickNs: nanoseconds(o.Tick),
		slackNs: nanoseconds(o.Slack), maxPending: o.MaxPending}
	if _, err := file.Write(unsafe.Slice((*byte)(unsafe.Pointer(&setup)), recordSize)); err != nil {
		file.Close()
		return nil, err
	}
	return &Wheel{file}, nil
}

// Adopt takes over a keyed wheel that was inherited, or received over a socket, with all that
// pends there.  The file belongs to the wheel.  It should not block, so that a goroutine that waits
// blocks no thread.
func Adopt(file *os.File) *Wheel {
	return &Wheel{file}
}

// Apply writes the records, in their order, and empties the batch.  If as many timeouts as
// MaxPending are in use, it waits until one ends.  If a record is refused, the error says why, and
// the batch begins with that record: those before it are done.
func (w *Wheel) Apply(b *Batch) error {
	if len(b.records) == 0 {
		return nil
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&b.records[0])), len(b.records)*recordSize)
	n, err := w.file.Write(bytes)
	b.records = b.records[:copy(b.records, b.records[n/recordSize:])]
	return err
}

// Arm is a batch of one.
func (w *Wheel) Arm(key uint64, d time.Duration) error {
	b := Batch{[]record{{op: opArm, key: key, expiresNs: nanoseconds(d)}}}
	return w.Apply(&b)
}

// Cancel is a batch of one.
func (w *Wheel) Cancel(key uint64) error {
	b := Batch{[]record{{op: opCancel, flags: absentOK, key: key}}}
	return w.Apply(&b)
}

// Read fetches events, and returns how many.  It waits for the first one, until the deadline of
// SetReadDeadline, which is os.ErrDeadlineExceeded.  io.EOF means that the wheel was drained.
func (w *Wheel) Read(events []Event) (int, error) {
	if len(events) == 0 {
		return 0, errors.New("twheel: no room for an event")
	}
	n, err := w.file.Read(unsafe.Slice((*byte)(unsafe.Pointer(&events[0])),
		len(events)*eventSize))
	return n / eventSize, err
}

// SetReadDeadline ends Read at that time; the zero value is never.
func (w *Wheel) SetReadDeadline(t time.Time) error {
	return w.file.SetReadDeadline(t)
}

// SetWriteDeadline ends the waiting of Apply at that time; the zero value is never.
func (w *Wheel) SetWriteDeadline(t time.Time) error {
	return w.file.SetWriteDeadline(t)
}

// File is the file of the wheel, to pass it on.
func (w *Wheel) File() *os.File {
	return w.file
}

// Close closes the descriptor, and ends Read and Apply with os.ErrClosed.  The timeouts end if no
// other descriptor of the wheel is open.
func (w *Wheel) Close() error {
	return w.file.Close()
}
