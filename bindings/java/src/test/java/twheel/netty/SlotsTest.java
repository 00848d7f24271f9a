// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.Test;

/** Numbers are given out and come back. */
public final class SlotsTest {
	private static final int CAPACITY = 100_000;

	@Test
	public void eachNumberButTheAlarmIsGivenOutOnce() {
		Slots slots = new Slots(CAPACITY);
		Set<Integer> out = new HashSet<>();
		int[] numbers = new int[300];
		int nr;

		while ((nr = slots.take(numbers, numbers.length)) > 0) {
			for (int i = 0; i < nr; i++)
				assertTrue(out.add(numbers[i]));
		}
		assertEquals(CAPACITY - 1, out.size());
		assertTrue(!out.contains(Table.ALARM));
		assertEquals(CAPACITY, slots.end());
	}

	@Test
	public void numbersComeBackInAnyOrder() {
		Slots slots = new Slots(CAPACITY);
		Set<Integer> out = new HashSet<>();
		List<Integer> list = new ArrayList<>();
		Random random = new Random(1);
		int[] numbers = new int[512];

		for (int round = 0; round < 2000; round++) {
			int nr = slots.take(numbers, random.nextInt(numbers.length));
			for (int i = 0; i < nr; i++) {
				assertTrue(out.add(numbers[i]));
				list.add(numbers[i]);
			}
			int back = Math.min(list.size(), random.nextInt(numbers.length));
			for (int i = 0; i < back; i++) {
				int at = random.nextInt(list.size());
				numbers[i] = list.set(at, list.get(list.size() - 1));
				list.remove(list.size() - 1);
				assertTrue(out.remove(numbers[i]));
			}
			slots.giveBack(numbers, 0, back);
		}
		int left = 0;
		int nr;
		while ((nr = slots.take(numbers, numbers.length)) > 0)
			left += nr;
		assertEquals(CAPACITY - 1, out.size() + left);
	}

	@Test
	public void aSlotHasWhatWasPutThere() {
		Slots slots = new Slots(CAPACITY);
		int[] numbers = new int[5000];
		Object owner = new Object();

		assertEquals(numbers.length, slots.take(numbers, numbers.length));
		assertNull(slots.get(numbers[4999]));
		slots.set(numbers[4999], owner);
		assertSame(owner, slots.get(numbers[4999]));
		assertNull(slots.get(numbers[4998]));
	}
}
