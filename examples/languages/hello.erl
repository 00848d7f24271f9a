#!/usr/bin/env escript
%% SPDX-License-Identifier: 0BSD
%%
%% The smallest program in Erlang: a port on a descriptor that the shell has opened. Events come
%% as messages.
%%
%%	escript hello.erl 3<>/dev/twheel

%% Values of <linux/twheel.h>
-define(OP_ARM, 1).
-define(OP_SETUP, 4).
-define(CLOCK_MONOTONIC, 16#101).

main(_) ->
    Wheel = open_port({fd, 3, 3}, [binary, stream]),
    %% op, flags, clock, event_size, tick_ns, slack_ns, slots, max_pending
    port_command(Wheel, <<?OP_SETUP:32/native, 0:32, ?CLOCK_MONOTONIC:32/native, 0:32,
                          1000000:64/native, 0:64, 0:32, 0:32>>),
    %% op, flags, key, expires_ns, interval_ns, repeats, slack_ticks
    port_command(Wheel, <<?OP_ARM:32/native, 0:32, 42:64/native, 100000000:64/native, 0:64,
                          0:32, 0:32>>),
    receive
        {Wheel, {data, <<_Id:64/native, Key:64/native, Deadline:64/native, Fired:64/native,
                         _Count:32/native, _Flags:32/native>>}} ->
            io:format("timeout ~b has expired, ~b us after its deadline~n",
                      [Key, (Fired - Deadline) div 1000])
    after 10000 ->
        halt(1)
    end.
