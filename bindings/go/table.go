// SPDX-License-Identifier: MIT

//go:build libtwheel

package twheel

// #cgo LDFLAGS: -ltwheel
// #include <twheel/table.h>
import "C"

import (
	"errors"
	"math"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Never is a deadline that is none: to start a number with it is to stop it.
const Never = math.MaxUint64

// State is what a number is, or was before a change.
type State int32

const (
	Idle    State = iota // not started, stopped, or fetched
	Pending              // started
	Unread               // it has expired, and nobody has fetched it
)

// Change is a number to start or to stop, for Table.Apply.  It is laid out as
// struct twheel_table_change.
type Change struct {
	Number     uint32
	result     int32
	DeadlineNs uint64 // Never to stop it
}

// Result is, after Apply, what the number was before, or why the change failed.
func (c *Change) Result() (State, error) {
	return state("apply", C.int32_t(c.result))
}

// The compiler refuses both if the sizes differ.
var (
	_ [unsafe.Sizeof(Change{}) - C.sizeof_struct_twheel_table_change]byte
	_ [C.sizeof_struct_twheel_table_change - unsafe.Sizeof(Change{})]byte
)

// TableOptions say how a table is to be; the zero value of each is the default.
type TableOptions struct {
	Clock  Clock
	Tick   time.Duration // numbers expire at its multiples; 1 us to 1 h, 1 ms by default
	Device bool          // on /dev/twheel, where processes may share it
	File   *os.File      // a table of the device, which is taken over by a duplicate of it
}

// Table has the numbers 0 to nr - 1, and each number has one timeout.  Any goroutine may use it at
// any time.
//
// A number is given back by who stopped it, if Stop says Pending or Unread; otherwise by who has
// fetched it.
type Table struct {
	// Held for reading by all calls of C: Close is to be the last one.
	lock  sync.RWMutex
	table *C.struct_twheel_table
	// A duplicate of the descriptor, for the poller of the runtime.
	file *os.File
	conn syscall.RawConn
}

func failed(name string, result C.int32_t) error {
	return os.NewSyscallError("twheel_table_"+name, syscall.Errno(-result))
}

func state(name string, result C.int32_t) (State, error) {
	if result < 0 {
		return Idle, failed(name, result)
	}
	return State(result), nil
}

// A duplicate above 2, which exec closes.
func duplicate(fd uintptr) (int, error) {
	r, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 3)
	if errno != 0 {
		return -1, os.NewSyscallError("fcntl", errno)
	}
	return int(r), nil
}

// The same of a file; File.Fd would make it block.
func duplicateFile(file *os.File) (fd int, err error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return -1, err
	}
	if closed := conn.Control(func(own uintptr) { fd, err = duplicate(own) }); closed != nil {
		return -1, closed
	}
	return fd, err
}

// OpenTable makes a table of nr numbers, or takes one over; nil is the defaults.
func OpenTable(nr uint32, o *TableOptions) (*Table, error) {
	if o == nil {
		o = &TableOptions{}
	}
	options := C.struct_twheel_table_options{size: C.sizeof_struct_twheel_table_options,
		clock: C.uint32_t(o.Clock), tick_ns: C.uint64_t(nanoseconds(o.Tick))}
	if o.Device {
		options.backend = C.TWHEEL_TABLE_DEVICE
	}
	if o.File != nil {
		fd, err := duplicateFile(o.File)
		if err != nil {
			return nil, err
		}
		options.fd = C.int32_t(fd)
	}
	t := &Table{}
	if result := C.twheel_table_open(&t.table, C.uint32_t(nr), &options); result < 0 {
		if o.File != nil {
			syscall.Close(int(options.fd))
		}
		return nil, failed("open", result)
	}
	if err := t.poll(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Have the runtime poll the descriptor.
func (t *Table) poll() error {
	result := C.twheel_table_fd(t.table)
	if result < 0 {
		return failed("fd", result)
	}
	fd, err := duplicate(uintptr(result))
	if err != nil {
		return err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	t.file = os.NewFile(uintptr(fd), "twheel table")
	t.conn, err = t.file.SyscallConn()
	return err
}

// Close closes the table, and ends Expired with os.ErrClosed.  On the device, what pends goes on if
// another descriptor of the table is open.
func (t *Table) Close() error {
	if t.file != nil {
		t.file.Close()
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.table == nil {
		return os.ErrClosed
	}
	C.twheel_table_close(t.table)
	t.table = nil
	return nil
}

// Start starts a number, or restarts it, by the time on the table's clock, and returns what it was.
func (t *Table) Start(number uint32, deadlineNs uint64) (State, error) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return Idle, os.ErrClosed
	}
	return state("start", C.twheel_table_start(t.table, C.uint32_t(number),
		C.uint64_t(deadlineNs)))
}

// StartAfter does the same, counted from now on.  It is not for a clock that can be set.
func (t *Table) StartAfter(number uint32, d time.Duration) (State, error) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return Idle, os.ErrClosed
	}
	return state("start_after", C.twheel_table_start_after(t.table, C.uint32_t(number),
		C.uint64_t(nanoseconds(d))))
}

// Stop stops a number, and returns what it was.  Nobody fetches it afterwards.
func (t *Table) Stop(number uint32) (State, error) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return Idle, os.ErrClosed
	}
	return state("stop", C.twheel_table_stop(t.table, C.uint32_t(number)))
}

func (t *Table) apply(changes []Change, flags C.uint32_t) (int, error) {
	if len(changes) == 0 {
		return 0, nil
	}
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return 0, os.ErrClosed
	}
	array := (*C.struct_twheel_table_change)(unsafe.Pointer(&changes[0]))
	result := C.twheel_table_apply(t.table, array, C.uint32_t(len(changes)), flags)
	if result < 0 {
		return 0, failed("apply", result)
	}
	return int(result), nil
}

// Apply makes the changes, in their order, and returns how many succeeded: each has a Result.  A
// call of C costs as much as ten changes, so some 256 at a time are best.
func (t *Table) Apply(changes []Change) (int, error) {
	return t.apply(changes, 0)
}

// ApplyAfter does the same, with deadlines that count from now on.
func (t *Table) ApplyAfter(changes []Change) (int, error) {
	return t.apply(changes, C.TWHEEL_TABLE_AFTER)
}

func (t *Table) fetch(numbers []uint32) (int, error) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return 0, os.ErrClosed
	}
	array := (*C.uint32_t)(unsafe.Pointer(&numbers[0]))
	result := C.twheel_table_expired(t.table, array, C.uint32_t(len(numbers)), 0)
	if result < 0 {
		return 0, failed("expired", result)
	}
	return int(result), nil
}

// Expired fetches numbers that have expired, and returns how many.  It waits for the first one,
// until the deadline of SetReadDeadline, which is os.ErrDeadlineExceeded.
func (t *Table) Expired(numbers []uint32) (int, error) {
	if len(numbers) == 0 {
		return 0, errors.New("twheel: no room for a number")
	}
	nr, err := t.fetch(numbers)
	if nr > 0 || err != nil {
		return nr, err
	}
	// The runtime asks again each time that the descriptor has become readable.
	waited := t.conn.Read(func(uintptr) bool {
		nr, err = t.fetch(numbers)
		return nr > 0 || err != nil
	})
	switch {
	case nr > 0 || err != nil:
		return nr, err
	case errors.Is(waited, os.ErrDeadlineExceeded):
		return 0, waited
	}
	return 0, os.ErrClosed
}

// SetReadDeadline ends Expired at that time; the zero value is never.
func (t *Table) SetReadDeadline(deadline time.Time) error {
	return t.file.SetReadDeadline(deadline)
}

// State is what a number is, and its deadline if it pends, or Never.
func (t *Table) State(number uint32) (State, uint64, error) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return Idle, Never, os.ErrClosed
	}
	var deadlineNs C.uint64_t
	now, err := state("state", C.twheel_table_state(t.table, C.uint32_t(number), &deadlineNs))
	if err != nil {
		return Idle, Never, err
	}
	return now, uint64(deadlineNs), nil
}

// Now is the time of the table, in nanoseconds; 0 if it is closed.
func (t *Table) Now() uint64 {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return 0
	}
	return uint64(C.twheel_table_now(t.table))
}

// Advance moves the clock, which has to be Virtual.  What is due then can be fetched when it
// returns.
func (t *Table) Advance(toNs uint64) error {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.table == nil {
		return os.ErrClosed
	}
	if result := C.twheel_table_advance(t.table, C.uint64_t(toNs)); result < 0 {
		return failed("advance", result)
	}
	return nil
}

// File is a duplicate of the descriptor: on the device, to pass the table on.
func (t *Table) File() *os.File {
	return t.file
}
