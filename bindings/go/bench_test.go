// SPDX-License-Identifier: MIT

package twheel

import (
	"fmt"
	"testing"
	"time"
)

// How many pend while a pair is measured.
var pendings = []int{1000, 100000}

// From 1 to 60 s, which no processor foresees.
func delays(nr int) []time.Duration {
	state := uint64(88172645463325252)
	all := make([]time.Duration, nr)
	for i := range all {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		all[i] = time.Second + time.Duration(state%uint64(59*time.Second))
	}
	return all
}

func nothing() {}

func pendingAfterFuncs(b *testing.B, nr int) []*time.Timer {
	all := make([]*time.Timer, nr)
	for i, d := range delays(nr) {
		all[i] = time.AfterFunc(time.Minute+d, nothing)
	}
	b.Cleanup(func() {
		for _, timer := range all {
			timer.Stop()
		}
	})
	return all
}

func BenchmarkAfterFuncAndStop(b *testing.B) {
	for _, nr := range pendings {
		b.Run(fmt.Sprint(nr), func(b *testing.B) {
			pendingAfterFuncs(b, nr)
			delays := delays(4096)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				time.AfterFunc(delays[i%4096], nothing).Stop()
			}
		})
	}
}

func BenchmarkTimerReset(b *testing.B) {
	for _, nr := range pendings {
		b.Run(fmt.Sprint(nr), func(b *testing.B) {
			timers := pendingAfterFuncs(b, nr)
			delays := delays(4096)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				timers[i*7919%nr].Reset(delays[i%4096])
			}
		})
	}
}
