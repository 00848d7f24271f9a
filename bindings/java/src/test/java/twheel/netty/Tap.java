// SPDX-License-Identifier: MIT
package twheel.netty;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs test classes of JUnit, and says TAP: {@code Tap CLASS...}. */
public final class Tap extends RunListener {
	private int nr;
	private Failure failure;

	@Override
	public void testStarted(Description description) {
		failure = null;
	}

	@Override
	public void testFailure(Failure failed) {
		failure = failed;
		if (failed.getDescription().getMethodName() == null)
			testFinished(failed.getDescription());
	}

	@Override
	public void testAssumptionFailure(Failure failed) {
		failure = failed;
	}

	@Override
	public void testFinished(Description description) {
		boolean skipped = failure != null &&
			failure.getException() instanceof org.junit.AssumptionViolatedException;

		System.out.printf("%s %d - %s%s%n", failure == null || skipped ? "ok" : "not ok", ++nr,
			sentence(description), skipped ? " # SKIP " + failure.getMessage() : "");
		if (failure != null && !skipped)
			System.out.print(Pattern.compile("^", Pattern.MULTILINE)
				.matcher(failure.getTrace().trim()).replaceAll("# ") + "\n");
	}

	private static String sentence(Description description) {
		String type = description.getClassName().replaceAll(".*\\.", "");
		Matcher words = Pattern.compile("[A-Z]")
			.matcher(String.valueOf(description.getMethodName()));

		return type + ": " + words.replaceAll(word -> " " + word.group().toLowerCase());
	}

	public static void main(String[] names) throws ClassNotFoundException {
		JUnitCore core = new JUnitCore();
		Class<?>[] classes = new Class<?>[names.length];

		System.out.println("TAP version 13");
		for (int i = 0; i < names.length; i++)
			classes[i] = Class.forName(names[i]);
		Tap tap = new Tap();
		core.addListener(tap);
		Result result = core.run(classes);
		System.out.println("1.." + tap.nr);
		System.exit(result.wasSuccessful() ? 0 : 1);
	}
}
