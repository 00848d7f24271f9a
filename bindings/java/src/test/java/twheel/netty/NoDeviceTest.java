// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;

import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** The timer on the device, where there is none. */
public final class NoDeviceTest {
	@Rule
	public final TemporaryFolder folder = new TemporaryFolder();

	@Test
	public void aDeviceThatIsNotThereIsNotMade() {
		Path path = folder.getRoot().toPath().resolve("twheel");
		UncheckedIOException e = assertThrows(UncheckedIOException.class,
			() -> new DeviceTable(path, 10, 1_000_000));

		assertEquals(NoSuchFileException.class, e.getCause().getClass());
		assertFalse(Files.exists(path));
	}
}
