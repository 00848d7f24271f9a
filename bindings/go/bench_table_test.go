// SPDX-License-Identifier: MIT

//go:build libtwheel

package twheel

import (
	"fmt"
	"testing"
)

func pendingTable(b *testing.B, nr int) *Table {
	table, err := OpenTable(uint32(nr+256), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { table.Close() })
	for i, d := range delays(nr) {
		if _, err := table.StartAfter(uint32(i), 60e9+d); err != nil {
			b.Fatal(err)
		}
	}
	return table
}

func BenchmarkTableStartAndStop(b *testing.B) {
	for _, nr := range pendings {
		b.Run(fmt.Sprint(nr), func(b *testing.B) {
			table, delays := pendingTable(b, nr), delays(4096)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				table.StartAfter(uint32(nr), delays[i%4096])
				table.Stop(uint32(nr))
			}
		})
	}
}

// changesOf has next fill in an array of 256 changes, as often as they are needed.
func changesOf(b *testing.B, table *Table, perChange int, next func(i int, c *Change)) {
	var changes [256]Change
	b.ResetTimer()
	for i := 0; i < b.N*perChange; {
		first := i
		for ; i < b.N*perChange && i < first+256; i++ {
			next(i, &changes[i-first])
		}
		n, err := table.ApplyAfter(changes[:i-first])
		if err != nil || n != i-first {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkTableStartAndStopBy256(b *testing.B) {
	for _, nr := range pendings {
		b.Run(fmt.Sprint(nr), func(b *testing.B) {
			delays := delays(4096)
			changesOf(b, pendingTable(b, nr), 2, func(i int, c *Change) {
				c.Number, c.DeadlineNs = uint32(nr), uint64(delays[i%4096])
				if i%2 == 1 {
					c.DeadlineNs = Never
				}
			})
		})
	}
}

func BenchmarkTableRestartBy256(b *testing.B) {
	for _, nr := range pendings {
		b.Run(fmt.Sprint(nr), func(b *testing.B) {
			delays := delays(4096)
			changesOf(b, pendingTable(b, nr), 1, func(i int, c *Change) {
				c.Number, c.DeadlineNs = uint32(i*7919%nr), uint64(delays[i%4096])
			})
		})
	}
}
