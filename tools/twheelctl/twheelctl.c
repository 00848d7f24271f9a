// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl: shows the wheels of /dev/twheel, and says what is wrong with them
 *
 * Here are the command line and the list of commands; each command has a file of its own.
 */
#include <argp.h>
#include <err.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "twheelctl.h"

const char *argp_program_version = "twheelctl " TWHEEL_VERSION;

#define KEY_INTERVAL	'i'
#define KEY_JSON	'j'
#define KEY_NAP		0x100	/* it has no letter */
#define KEY_NEAREST	'n'
#define KEY_WATCH	'w'

#define OPTION_JSON \
	{ "json", KEY_JSON, NULL, 0, "Print JSON; twheelctl(8) lists the keys", 0 }
#define OPTION_INTERVAL(doc) \
	{ "interval", KEY_INTERVAL, "SECONDS", 0, doc, 0 }
#define OPTION_NEAREST \
	{ "nearest", KEY_NEAREST, "NUMBER", 0, \
	  "Show so many of the timeouts that expire next (default 10; 0 spares a walk)", 0 }

static const struct argp_option check_options[] = { OPTION_JSON, {} };

static const struct argp_option late_options[] = {
	OPTION_INTERVAL("Watch for so long (default 1, with --watch 60)"),
	{ "nap", KEY_NAP, "SECONDS", 0,
	  "Name a reader that leaves events unread for so long (default 0.1, or a tick and the slack if that is longer)",
	  0 },
	{ "watch", KEY_WATCH, NULL, 0,
	  "Go on, interval by interval, and print a line when something begins to be wrong, or is over",
	  0 },
	OPTION_JSON, {}
};

static const struct argp_option ps_options[] = {
	OPTION_INTERVAL("Look twice, so far apart, and show rates"), OPTION_JSON, {}
};

static const struct argp_option stat_options[] = {
	OPTION_INTERVAL("Look twice, so far apart, and show rates"), OPTION_JSON, {}
};

static const struct argp_option show_options[] = { OPTION_NEAREST, OPTION_JSON, {} };

/*
 * struct command - a command
 * @name: its name
 * @run: does it, and returns the exit status
 * @options: what it takes
 * @arguments: what stands behind the options
 * @least: the least number of these
 * @most: the greatest number
 * @says: one line
 */
static const struct command {
	const char *name;
	int (*run)(const struct options *options);
	const struct argp_option *options;
	const char *arguments;
	int least;
	int most;
	const char *says;
} commands[] = {
	{ "check", check_run, check_options, "[PID]", 0, 1,
	  "Say why a program does not get the device, and what to do" },
	{ "late", late_run, late_options, "[PID...]", 0, INT_MAX,
	  "Say which wheels are late or stuck, and why" },
	{ "ps", ps_run, ps_options, "", 0, 0,
	  "Show the wheels of all processes that you may look into" },
	{ "show", show_run, show_options, "PID FD", 2, 2,
	  "Show all about one wheel, and the timeouts that expire next" },
	{ "stat", stat_run, stat_options, "", 0, 0,
	  "Show the counters of the module, and what its users have" },
};

/* The state of the parser of a command's line. */
struct parsed {
	const struct command *command;
	struct options options;
};

/* A number behind an option or as an argument, from 0 on. */
static double parse_number(struct argp_state *state, const char *text, double most)
{
	double number;
	char *end;

	number = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || number > most)
		argp_error(state, "\"%s\" is not a number from 0 to %.0f", text, most);
	return number;
}

static __u64 parse_seconds(struct argp_state *state, const char *text)
{
	__u64 ns = parse_number(state, text, 86400) * NS_PER_S;

	if (!ns)
		argp_error(state, "a length of time is longer than 0");
	return ns;
}

static int parse_whole(struct argp_state *state, const char *text)
{
	double number = parse_number(state, text, INT_MAX);

	if (number != (int)number)
		argp_error(state, "\"%s\" is not a whole number", text);
	return number;
}

static error_t parse_command(int key, char *argument, struct argp_state *state)
{
	struct parsed *parsed = state->input;
	struct options *options = &parsed->options;

	switch (key) {
	case KEY_JSON:
		options->json = true;
		return 0;
	case KEY_INTERVAL:
		options->interval_ns = parse_seconds(state, argument);
		return 0;
	case KEY_NAP:
		options->nap_ns = parse_seconds(state, argument);
		return 0;
	case KEY_WATCH:
		options->watch = true;
		return 0;
	case KEY_NEAREST:
		options->nearest = parse_whole(state, argument);
		return 0;
	case ARGP_KEY_ARG:
		if (options->nr == parsed->command->most)
			argp_error(state, "too many arguments");
		options->numbers = reallocarray(options->numbers, options->nr + 1, sizeof(int));
		if (!options->numbers)
			err(UNKNOWN, "reading the command line");
		options->numbers[options->nr++] = parse_whole(state, argument);
		return 0;
	case ARGP_KEY_END:
		if (options->nr < parsed->command->least)
			argp_error(state, "%s has to be told", parsed->command->arguments);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* argp names the command by the first word of its line. */
static int command_run(const struct command *command, int argc, char **argv)
{
	const struct argp argp = {
		.options = command->options,
		.parser = parse_command,
		.args_doc = command->arguments,
		.doc = command->says,
	};
	struct parsed parsed = {
		.command = command,
		.options = { .nearest = 10 },
	};
	char name[64];
	int status;

	snprintf(name, sizeof(name), "twheelctl %s", command->name);
	argv[0] = name;
	argp_parse(&argp, argc, argv, 0, NULL, &parsed);
	status = command->run(&parsed.options);
	free(parsed.options.numbers);
	return status;
}

static error_t parse_main(int key, char *argument, struct argp_state *state)
{
	int *status = state->input;
	size_t i;

	switch (key) {
	case ARGP_KEY_ARG:
		for (i = 0; i < ARRAY_SIZE(commands); i++) {
			if (strcmp(argument, commands[i].name))
				continue;
			*status = command_run(&commands[i], state->argc - state->next + 1,
					      state->argv + state->next - 1);
			/* The command has parsed all arguments that followed. */
			state->next = state->argc;
			return 0;
		}
		argp_error(state, "there is no command \"%s\"", argument);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The list of commands for --help. */
static char *help_filter(int key, const char *text, void *input)
{
	size_t size, i;
	char *help;
	FILE *out;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	out = open_memstream(&help, &size);
	if (!out)
		return NULL;
	fputs("Commands:\n", out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-6s %-9s %s\n", commands[i].name, commands[i].arguments,
			commands[i].says);
	fputs("\n`twheelctl COMMAND --help' lists the options of a command.\n\n", out);
	fputs("Exit status: 0: done, and nothing is wrong; 1: a problem was found; 2: it cannot be told, or the command failed; 64: the command line is wrong.",
	      out);
	fclose(out);
	return help;
}

int main(int argc, char **argv)
{
	const struct argp argp = {
		.parser = parse_main,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "Show the wheels of /dev/twheel, and say what is wrong with them\v ",
		.help_filter = help_filter,
	};
	int status = DONE;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &status);
	if (fflush(stdout) || ferror(stdout))
		err(UNKNOWN, "writing to standard output");
	return status;
}
