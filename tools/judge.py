# SPDX-License-Identifier: Apache-2.0
"""tools/judge.py - a second verifier of plan files (docs/plan-file.md), for tools/soak.

Shares nothing with the planner or with headroom verify, and prefers the obvious way to the fast one:
it derives every lifetime, and compares accesses pair by pair.
"""

ALIGN = 64
BLOCK = 4096  # of direct I/O
SPACES = ("host", "device", "pinned", "file", "base")
TRANSFERS = ("fetch_begin", "fetch_wait", "spill_begin", "spill_wait")
BYTES = {"f32": 4, "bf16": 2, "f64": 8, "i32": 4, "f16": 2, "f8_e4m3": 1, "u8": 1, "u16": 2}
ROLES = ("weight", "master", "moment", "gradient", "activation", "input", "sum", "table", "scratch")


class Broken(Exception):
    pass


def demand(true, sentence):
    if not true:
        raise Broken(sentence)


class Judge:
    """Derives lifetimes from steps, loops and homes alone, and compares the file with them."""

    def __init__(self, plan):
        self.plan = plan
        self.loops, self.buffers, self.steps = plan["loops"], plan["buffers"], plan["steps"]
        self.first = plan["version"] == 1  # without spaces
        self.check_forms()
        self.roots = [self.root(b) for b in range(len(self.buffers))]
        self.accesses = {}  # root: [(step, buffer, kind)], the reads of a step first
        for step in self.steps:
            for buffer in step["reads"]:
                self.note(buffer, step["index"], "read")
            for buffer, kind in step["writes"]:
                demand(kind in ("write", "accumulate", "update"), f"an access of kind {kind}")
                self.note(buffer, step["index"], kind)

    def root(self, buffer):
        for _ in range(len(self.buffers)):
            view_of = self.buffers[buffer]["view_of"]
            if view_of is None:
                return buffer
            buffer = view_of
        raise Broken(f"buffer {buffer} is a view of itself")

    def note(self, buffer, step, kind):
        self.accesses.setdefault(self.roots[buffer], []).append((step, buffer, kind))

    def check_forms(self):
        """Checks that indices are in range, sizes are valid and names are unique."""
        def index(value, end, what):
            demand(isinstance(value, int) and 0 <= value < end, f"{what} is {value}")

        demand(self.plan["version"] in (1, 2), "another version")
        names = set()
        for number, buffer in enumerate(self.buffers):
            name = f"buffer {number} ({buffer['name']})"
            demand(buffer["name"] not in names, f"{name} has a name that is taken")
            names.add(buffer["name"])
            needed = BYTES[buffer["dtype"]]
            demand(self.space(number) in SPACES, f"{name} is in {self.space(number)}")
            for size in buffer["shape"]:
                demand(size >= 1, f"{name} has no shape")
                needed *= size
            demand(needed <= buffer["bytes"], f"{name} is smaller than its shape")
            demand(buffer["role"] in ROLES, f"{name} is a {buffer['role']}")
            index(buffer["storage"], len(self.buffers), f"storage of {name}")
            index(buffer["home"] + 1, len(self.loops) + 1, f"home of {name}")
            if buffer["view_of"] is not None:
                index(buffer["view_of"], len(self.buffers), f"view_of of {name}")
        for step in self.steps:
            index(step["loop"], len(self.loops), f"loop of step {step['index']}")
            for buffer in step["reads"] + [b for b, _ in step["writes"]]:
                index(buffer, len(self.buffers), f"a buffer of step {step['index']}")

    def space(self, buffer):
        return "host" if self.first else self.buffers[buffer]["space"]

    def transfers(self, step):
        return not self.first and self.steps[step]["op"] in TRANSFERS

    def elements(self, buffer):
        count = 1
        for size in self.buffers[buffer]["shape"]:
            count *= size
        return count

    def check_loops(self):
        last = len(self.steps) - 1
        demand(self.loops[0]["parent"] == -1, "loop 0 has a parent")
        for index, loop in enumerate(self.loops):
            demand(loop["repeats"] >= 1, f"loop {index} repeats {loop['repeats']} times")
            if index == 0:
                demand((loop["step_first"], loop["step_last"]) == (0, last),
                       "loop 0 is not the run")
                continue
            demand(0 <= loop["parent"] < len(self.loops), f"loop {index} has no parent")
            around = self.loops[loop["parent"]]
            demand(around["step_first"] <= loop["step_first"] <= loop["step_last"]
                   <= around["step_last"], f"loop {index} reaches out of its parent")
        for position, step in enumerate(self.steps):
            demand(step["index"] == position, f"step {position} calls itself {step['index']}")
            holding = {i for i, l in enumerate(self.loops)
                       if l["step_first"] <= position <= l["step_last"]}
            path = self.path(position)
            demand(set(path) == holding, f"step {position} is in loops {holding}, says {path}")

    def path(self, step):
        """The loops around a step, innermost first, the run last."""
        path, loop = [], self.steps[step]["loop"]
        while loop != -1:
            demand(loop not in path, f"loop {loop} is around itself")
            path.append(loop)
            loop = self.loops[loop]["parent"]
        return path

    def turning(self, step, home):
        """The loops inside `home` around a step with more than one iteration, innermost first."""
        path = self.path(step)
        inside = path[:path.index(home)] if home in path else path[:-1]
        return [l for l in inside if self.loops[l]["repeats"] > 1]

    def life(self, root):
        """First and last step of the lifetime of a buffer."""
        home = self.buffers[root]["home"]
        if home == -1:
            return 0, len(self.steps) - 1
        first, last = len(self.steps), -1
        for step, _, _ in self.accesses[root]:
            demand(home in self.path(step), f"step {step} uses buffer {root} outside its home")
            around = [self.loops[l] for l in self.turning(step, home)]
            first = min([first, step] + [l["step_first"] for l in around])
            last = max([last, step] + [l["step_last"] for l in around])
        return first, last

    def check_buffers(self):
        for index, buffer in enumerate(self.buffers):
            name = f"buffer {index} ({buffer['name']})"
            demand(buffer["bytes"] > 0 and buffer["offset"] >= 0, f"{name} has no place")
            unit = BLOCK if self.space(index) == "file" else 1
            demand(buffer["bytes"] % unit == 0 and buffer["offset"] % unit == 0,
                   f"{name} has no whole blocks of the file")
            if buffer["view_of"] is not None:
                around = self.buffers[self.roots[index]]
                end = around["offset"] + around["bytes"]
                demand(around["offset"] <= buffer["offset"] <= end - buffer["bytes"],
                       f"{name} reaches out of what it shows")
                demand(self.space(index) == self.space(self.roots[index]),
                       f"{name} is in another space than what it shows")
                for key in ("storage", "home", "step_first", "step_last"):
                    demand(buffer[key] == around[key],
                           f"{name} has another {key} than what it shows")
                continue
            demand(buffer["bytes"] % ALIGN == 0 and buffer["offset"] % ALIGN == 0,
                   f"{name} is not aligned")
            demand(index in self.accesses, f"{name} is never used")
            demand((buffer["step_first"], buffer["step_last"]) == self.life(index),
                   f"{name} lives {self.life(index)}, says otherwise")
            self.check_written(index)
            if buffer["role"] == "scratch":
                demand([k for _, _, k in self.accesses[index]] == ["write"],
                       f"{name} is scratch of more than one step")

    def check_written(self, root):
        """Checks that every byte a step reads was written before, in the first iteration of each loop.
        After a loop, a view that it moved has covered repeats times its bytes."""
        if self.space(root) == "base":
            return  # its files are there before the run
        home, start = self.buffers[root]["home"], self.buffers[root]["offset"]
        size = self.buffers[root]["bytes"]
        written = []  # (step, first byte, bytes, is a view)
        for step, index, kind in self.accesses[root]:
            buffer = self.buffers[index]
            at = buffer["offset"] - start
            if kind in ("read", "update") or (kind == "accumulate" and home == -1):
                needed = BYTES[buffer["dtype"]] * self.elements(index)
                missing = [(at, at + needed)]
                for before, low, count, moves in written:
                    if before == step:
                        continue
                    if moves:
                        here = self.path(step)
                        for loop in self.turning(before, home):
                            if loop not in here:
                                count *= self.loops[loop]["repeats"]
                    high = min(low + count, size)
                    missing = [part for a, b in missing
                               for part in ((a, min(b, low)), (max(a, high), b))
                               if part[0] < part[1]]
                demand(not missing, f"buffer {index} ({buffer['name']}) is read at step {step} "
                       "before it is written")
            if kind != "read":
                moves = buffer["view_of"] is not None and self.buffers[root]["role"] != "sum"
                written.append((step, at, buffer["bytes"], moves))

    def section(self, step):
        path = self.path(step)
        return path[-2] if len(path) > 1 else path[-1]

    def is_average(self, root):
        buffer = self.buffers[root]
        return buffer["role"] == "moment" and buffer["name"].startswith("average ")

    def renewals(self, root):
        """The steps after the first section that write a buffer."""
        return [step for step, _, kind in self.accesses.get(root, [])
                if kind != "read" and self.section(step) != self.section(0)]

    def turn_of(self, step):
        """The loop in whose iteration an update must be: the home of the gradient it reads."""
        touched = self.steps[step]["reads"] + [b for b, _ in self.steps[step]["writes"]]
        homes = [self.buffers[self.roots[b]]["home"] for b in touched
                 if self.buffers[self.roots[b]]["role"] == "gradient"]
        return ([self.section(step)] + [h for h in homes if h >= 0])[-1]

    def check_averages(self):
        """Checks weight averages: each belongs to one master or weight, and one step updates it after
        each update of that weight, in the same iteration. Either every trained weight has an average
        or none has. Returns {averaged buffer: step}."""
        follower, bare = {}, []
        waiting = {root for root in set(self.roots) if self.is_average(root)}
        for step in self.steps:
            if self.section(step["index"]) != self.section(0):
                continue
            made = [self.roots[b] for b, kind in step["writes"] if kind != "update"]
            averages = [root for root in made if self.is_average(root)]
            subjects = [[root for root in made if self.buffers[root]["role"] == role]
                        for role in ("master", "weight")]
            subjects = subjects[0] or subjects[1]
            if not averages:
                bare += [root for root in subjects if self.renewals(root)]
                continue
            demand(len(averages) == len(subjects) == 1 and averages[0] in waiting
                   and subjects[0] not in follower,
                   f"step {step['index']} makes averages {averages} of buffers {subjects}")
            waiting.remove(averages[0])
            follower[subjects[0]] = self.follower(averages[0], subjects[0])
        demand(not waiting, f"averages {waiting} are not made with a weight")
        demand(not bare or all(s is None for s in follower.values()),
               f"buffers {bare} are updated and have no average, others have one")
        return follower

    def follower(self, average, of):
        """The single step that updates an average; None if its weight is never updated either."""
        name = f"buffer {average} ({self.buffers[average]['name']})"
        before, after = self.renewals(of), self.renewals(average)
        if not before and not after:
            return None
        demand(before and len(after) == 1 and before[-1] < after[0]
               and (len(before) == 1 or not self.first)
               and self.section(before[-1]) == self.section(after[0]),
               f"{name} is renewed by steps {after}, buffer {of} by {before}")
        step = self.steps[after[0]]
        halves = [b for b in step["reads"][1:2]  # the 16 bits that a bf16 weight lacks
                  if self.buffers[b]["role"] == "moment" and not self.is_average(b)
                  and self.roots[b] == b and self.renewals(b) == before]
        demand((step["reads"], step["writes"]) == ([of] + halves, [[average, "update"]]),
               f"step {after[0]} does more than renew {name} from buffer {of}, or less")
        turn = (self.section(before[-1]) if self.in_strips(before[-1])
                else self.turn_of(before[-1]))
        demand(turn in self.path(after[0]) and not self.turning(after[0], turn),
               f"{name} and buffer {of} are not renewed in the same turns")
        return after[0]

    def check_state(self):
        """Checks buffers that outlive the run: the first section initializes them, and one step updates
        them once, outside of loops. Between its update and the end of the section, only its average
        and steps that do nothing but update tables may read a weight."""
        load, follower = self.section(0), self.check_averages()
        for root, accesses in self.accesses.items():
            role, home = self.buffers[root]["role"], self.buffers[root]["home"]
            changed = {}  # section: step
            for step, buffer, kind in accesses:
                name, section = f"buffer {buffer} ({self.buffers[buffer]['name']})", \
                    self.section(step)
                if (home == -1 and section != load and kind in ("write", "accumulate")
                        and self.space(root) == "host"):
                    masters = [b for b, k in self.steps[step]["writes"] if k == "update"
                               and self.buffers[self.roots[b]]["role"] == "master"]
                    demand(kind == "write" and role == "weight" and masters,
                           f"{name} outlives the run, step {step} writes it over")
                if role not in ("weight", "master"):
                    continue
                piece = kind != "read" and not self.first
                writes = self.steps[step]["writes"]
                tables = writes and all(k == "update" and self.buffers[self.roots[b]]["role"] == "table"
                                        for b, k in writes)
                demand(changed.get(section, step) == step or follower.get(root) == step or piece
                       or tables and kind == "read",
                       f"{name} is used at step {step} after its update")
                if kind != "read" and section != load:
                    demand(section not in changed or (piece and changed[section] != step),
                           f"{name} is updated twice")
                    changed[section] = step
                    demand(not self.turning(step, self.turn_of(step)),
                           f"{name} is updated in each turn of a loop")

    def check_parameters(self):
        """The outputs of one step of the first section are updated by one step, or never; averages
        have their own update."""
        load = self.section(0)
        renewed = {}
        if not self.first:
            self.check_pieces()
            return
        for step in self.steps:
            for root in [self.roots[b] for b, _ in step["writes"]]:
                if self.buffers[root]["role"] in ("weight", "master", "moment"):
                    renewed.setdefault(root, []).append(step["index"])
        for step in self.steps:
            if self.section(step["index"]) != load:
                continue
            made = [self.roots[b] for b, _ in step["writes"]
                    if self.roots[b] in renewed and not self.is_average(self.roots[b])]
            times = {tuple(s for s in renewed[root] if self.section(s) != load) for root in made}
            demand(len(times) <= 1, f"step {step['index']} makes buffers {made}, which are not "
                   "updated together")
        for root, steps in renewed.items():
            demand(len([s for s in steps if self.section(s) != load]) <= 1,
                   f"buffer {root} is updated by steps {steps}")

    # ---- transfers

    def together(self, one, two):
        """Whether two steps are executed equally often, in turns."""
        apart = set(self.path(one)) ^ set(self.path(two))
        loads = [self.section(step) == self.section(0) for step in (one, two)]
        return loads[0] == loads[1] and all(self.loops[l]["repeats"] == 1 for l in apart)

    def extent(self, step, buffer):
        """The root of a buffer and the bytes of it that all iterations inside the section cover."""
        root, bytes_ = self.roots[buffer], self.buffers[buffer]["bytes"]
        if buffer != root:
            inner = self.path(step)[:-2]
            home = self.buffers[root]["home"]
            for loop in inner[:inner.index(home)] if home in inner else inner:
                bytes_ *= self.loops[loop]["repeats"]
        first = self.buffers[buffer]["offset"] - self.buffers[root]["offset"]
        return root, first, min(first + bytes_, self.buffers[root]["bytes"])

    def meets(self, one, two):
        return one[0] == two[0] and one[1] < two[2] and two[1] < one[2]

    def is_window(self, root):
        buffer = self.buffers[root]
        return (not self.first and buffer["role"] == "moment" and buffer["home"] >= 0
                and self.space(root) == "host" and not self.is_average(root))

    def is_spilled(self, root):
        """Whether the file has an activation of an iteration, from its spill to its fetch."""
        buffer = self.buffers[root]
        return self.space(root) == "file" and buffer["role"] == "activation" and buffer["home"] >= 0

    def ends_of(self, step):
        """The buffers of a begin in the host, and those in the other space."""
        made = [b for b, _ in step["writes"]]
        demand(len(made) == len(step["reads"]) > 0 and all(k == "write" for _, k in step["writes"]),
               f"step {step['index']} does not write as many buffers as it reads")
        host, far = (made, step["reads"]) if step["op"] == "fetch_begin" else (step["reads"], made)
        for near, other in zip(host, far):
            buffer, owner = self.buffers[near], self.buffers[self.roots[near]]
            moved = buffer["bytes"]
            if self.is_spilled(self.roots[other]):  # whole blocks
                moved += -moved % BLOCK
            demand(self.space(near) == "host" != self.space(other)
                   and moved == self.buffers[other]["bytes"] and owner["home"] >= 0
                   and buffer["offset"] + moved <= owner["offset"] + owner["bytes"]
                   and (self.space(other) != "file" or buffer["offset"] % BLOCK == 0),
                   f"step {step['index']} cannot move bytes between buffers {near} and {other}")
        return host, far

    def pair_transfers(self):
        """[(begin, wait)], after a check of the form of every step."""
        waiting, pairs = [], []
        for number, step in enumerate(self.steps):
            if step["op"] in ("fetch_begin", "spill_begin"):
                waiting.append((number, step["op"][:5], self.ends_of(step)[0]))
                continue
            touched = step["reads"] + [b for b, _ in step["writes"]]
            if step["op"] == "lookup":
                touched = [b for b in touched if self.space(b) != "base"]
            demand(all(self.space(b) == "host" for b in touched),
                   f"step {number} uses a buffer of another space")
            if step["op"] not in TRANSFERS:
                continue
            begun = [w for w in waiting if w[1:] == (step["op"][:5], step["reads"])]
            demand(begun and not step["writes"], f"step {number} waits for nothing")
            demand(self.together(begun[0][0], number), f"step {number} waits in other iterations")
            waiting.remove(begun[0])
            pairs.append((begun[0][0], number))
        demand(not waiting, f"transfers {waiting} are not waited for")
        return pairs

    def check_transfers(self):
        """Checks that nothing accesses the bytes of a transfer from its begin to its wait, and what is
        spilled: the first section fills every moment, later sections update it in windows."""
        for root in set(self.roots):
            buffer = self.buffers[root]
            if self.space(root) == "base":
                demand(buffer["role"] == "weight" and buffer["home"] == -1
                       and all(kind == "read" for _, _, kind in self.accesses[root]),
                       f"buffer {root} is not a weight that is only read")
                continue
            demand(self.space(root) == "host" or self.is_spilled(root)
                   or (buffer["role"] == "moment" and buffer["home"] == -1 and not self.is_average(root)),
                   f"buffer {root} must be in the host")
        for begin, wait in self.pair_transfers():
            moved = [self.extent(begin, b) for ends in self.ends_of(self.steps[begin]) for b in ends]
            for i, one in enumerate(moved):
                demand(not any(self.meets(one, two) for two in moved[:i]),
                       f"step {begin} moves bytes twice")
            for number in range(begin + 1, wait):
                step = self.steps[number]
                for buffer in step["reads"] + [b for b, _ in step["writes"]]:
                    demand(not any(self.meets(self.extent(number, buffer), one) for one in moved),
                           f"step {number} uses buffer {buffer}, which step {begin} moves")
        self.check_windows()

    def check_windows(self):
        held = []  # fetched and not yet overwritten or spilled
        spilled = {}  # root: step of the last spill after the first section
        filled = {r: 0 for r in set(self.roots)
                  if self.space(r) not in ("host", "base") and not self.is_spilled(r)}
        for number, step in enumerate(self.steps):
            if step["op"] in ("fetch_wait", "spill_wait"):
                continue
            if step["op"] == "spill_begin":
                homes = {self.buffers[self.roots[far]]["home"] for far in self.ends_of(step)[1]
                         if self.is_spilled(self.roots[far])}
                demand(len(homes) <= 1 and not self.turning(number, *homes or [self.section(number)]),
                       f"step {number} repeats")
                for window, far in zip(*self.ends_of(step)):
                    if homes:
                        self.spill_activation(number, window, far)
                        spilled[self.roots[far]] = number
                    elif self.section(number) == self.section(0):
                        here = self.extent(number, window)
                        met = [w for w in held if self.meets(w["extent"], here)]
                        demand(all(w["updated"] is None for w in met), f"{met} are not spilled")
                        held = [w for w in held if w not in met]
                        self.fill(filled, number, window, far)
                    else:
                        self.spill(held, number, window, far)
                        spilled[self.roots[far]] = number
                continue
            for buffer in step["reads"]:
                here = self.extent(number, buffer)
                demand(not any(self.meets(w["extent"], here)
                               and spilled.get(self.roots[w["far"]], -1) >= w["begin"] for w in held),
                       f"step {number} reads buffer {buffer}, which was fetched before a spill")
            for position, (buffer, kind) in enumerate(step["writes"]):
                here = self.extent(number, buffer)
                met = [w for w in held if self.meets(w["extent"], here)]
                if kind == "update":
                    demand(met or not self.is_window(self.roots[buffer])
                           or self.section(number) == self.section(0),
                           f"step {number} updates window {buffer}, which holds nothing")
                    for window in met:
                        demand(window["buffer"] == buffer and window["updated"] is None
                               and self.together(window["begin"], number),
                               f"step {number} updates buffer {buffer}, not window {window}")
                        window["updated"] = number
                        self.stands_for[number, buffer] = window["far"]
                    continue
                demand(all(w["updated"] is None for w in met), f"step {number} overwrites {met}")
                held = [w for w in held if w not in met]
                if step["op"] == "fetch_begin":
                    held.append({"buffer": buffer, "far": step["reads"][position], "extent": here,
                                 "begin": number, "updated": None})
        demand(all(w["updated"] is None for w in held), f"windows {held} are not spilled")
        for root, bytes_ in filled.items():
            demand(bytes_ == self.buffers[root]["bytes"], f"buffer {root} is not filled")

    def fill(self, filled, step, window, far):
        root, first, end = self.extent(step, far)
        demand(self.is_window(self.roots[window]) and filled[root] == first,
               f"step {step} does not fill the next bytes of buffer {root} from a window")
        filled[root] = end

    def spill_activation(self, step, buffer, far):
        one, two = self.buffers[self.roots[buffer]], self.buffers[self.roots[far]]
        demand(one["role"] == "activation" and one["home"] == two["home"] and self.roots[far] == far,
               f"step {step} spills buffer {buffer}, which is no activation of the turns of buffer {far}")

    def spill(self, held, step, window, far):
        found = [w for w in held if w["buffer"] == window]
        demand(len(found) == 1 and found[0]["far"] == far and found[0]["updated"] is not None
               and self.together(found[0]["begin"], step),
               f"step {step} spills buffer {window}, which does not hold an update of buffer {far}")
        held.remove(found[0])

    # ---- pieces

    def state_of(self, step):
        """The buffers of state that a step writes; for a window the part that it holds."""
        found = [self.stands_for.get((step, b), b) for b, _ in self.steps[step]["writes"]]
        return [b for b in found if self.buffers[self.roots[b]]["role"] in
                ("weight", "master", "moment") and not self.is_window(self.roots[b])]

    def in_strips(self, step):
        """Whether a step updates state in a loop inside its section, all of it through views: each
        iteration updates the strip after the one before."""
        state = self.state_of(step)
        return bool(state and self.turning(step, self.section(step))
                    and all(b != self.roots[b] for b in state))

    def once(self, step):
        return self.in_strips(step) or not self.turning(step, self.section(step))

    def pieces(self):
        """{root of state: [(step, first byte, end)]} after the first section."""
        made = {}
        for number, step in enumerate(self.steps):
            if self.transfers(number) or self.section(number) == self.section(0):
                continue
            for buffer, _ in step["writes"]:
                buffer = self.stands_for.get((number, buffer), buffer)
                root = self.roots[buffer]
                if self.buffers[root]["role"] not in ("weight", "master", "moment") \
                        or self.is_window(root):
                    continue
                first = self.buffers[buffer]["offset"] - self.buffers[root]["offset"]
                size = self.buffers[buffer]["bytes"]
                for loop in self.turning(number, self.section(number)):
                    size *= self.loops[loop]["repeats"] if self.in_strips(number) else 1
                demand(first + size <= self.buffers[root]["bytes"],
                       f"the strips of step {number} reach out of buffer {root}")
                made.setdefault(root, []).append((number, first, first + size))
        return made

    def check_pieces(self):
        """All state of a parameter is updated by the same steps, each from the same element on, in order
        and without a gap. What a step of the first section creates together is of one parameter, and so
        is what a later step updates together."""
        pieces, groups = self.pieces(), []
        for number, step in enumerate(self.steps):
            if self.section(number) == self.section(0) and not self.transfers(number):
                groups.append([self.roots[b] for b, _ in step["writes"]])
        for root, parts in pieces.items():
            name, end = f"buffer {root} ({self.buffers[root]['name']})", 0
            for step, first, after in parts:
                demand(first == end, f"{name}: step {step} updates from byte {first}, not {end}")
                demand((self.together(parts[0][0], step)
                        or (self.once(parts[0][0]) and self.once(step)))
                       and self.section(parts[0][0]) == self.section(step),
                       f"{name} is updated in two places")
                end = after
            demand(len({step for step, _, _ in parts}) == len(parts), f"{name} is updated twice")
            demand(end >= self.elements(root) * BYTES[self.buffers[root]["dtype"]],
                   f"{name} is updated up to byte {end} only")
        for number in {step for parts in pieces.values() for step, _, _ in parts}:
            groups.append([r for r, parts in pieces.items() if number in [p[0] for p in parts]])
            self.check_elements(pieces, number, groups[-1])
            self.check_gradient_parts(pieces, number, groups[-1])
        for group in groups:
            times = {tuple(p[0] for p in pieces.get(root, [])) for root in group
                     if self.buffers[root]["role"] in ("weight", "master", "moment")
                     and not self.is_average(root) and not self.is_window(root)}
            demand(len(times) <= 1, f"buffers {group} are updated by steps {times}")
        for root in set(self.roots):
            demand(self.space(root) in ("host", "base") or root in pieces or self.is_spilled(root),
                   f"buffer {root} is never updated")

    def check_gradient_parts(self, pieces, step, roots):
        """A step reads the gradient of the elements that it updates."""
        for buffer in self.steps[step]["reads"]:
            grad = self.roots[buffer]
            size = BYTES[self.buffers[grad]["dtype"]]
            if self.buffers[grad]["role"] != "gradient":
                continue
            weights = {self.elements(r) for r in roots if self.buffers[r]["role"] != "moment"}
            parts = [self.elements(b) for b in self.state_of(step)
                     if self.elements(self.roots[b]) in weights] or [0]
            demand(not self.in_strips(step) or self.elements(buffer) >= max(parts),
                   f"step {step} updates strips of {parts} elements with those of buffer {buffer}")
            first = (self.buffers[buffer]["offset"] - self.buffers[grad]["offset"]) / size
            end = first + self.buffers[buffer]["bytes"] / size
            for root in roots:
                if self.is_average(root) or self.elements(root) != self.elements(grad):
                    continue
                bytes_ = BYTES[self.buffers[root]["dtype"]]
                start, stop = [part[1:] for part in pieces[root] if part[0] == step][0]
                demand(first == start / bytes_
                       and end >= min(stop / bytes_, self.elements(grad)),
                       f"step {step} updates buffer {root} with another part of its gradient")

    def check_elements(self, pieces, step, roots):
        starts = {}
        roots = [root for root in roots if not self.is_average(root)]
        for root in roots:
            first = [part[1] for part in pieces[root] if part[0] == step][0]
            starts.setdefault(self.elements(root), set()).add(
                first / BYTES[self.buffers[root]["dtype"]])
        demand(all(len(same) == 1 for same in starts.values()),
               f"step {step} updates buffers {roots} from different elements on")
        demand(not roots or any(self.buffers[root]["role"] != "moment" for root in roots),
               f"step {step} updates moments {roots} without a weight")

    def check_gradients(self):
        """A gradient or sum is read only after its last accumulation."""
        for root, accesses in self.accesses.items():
            if self.buffers[root]["role"] not in ("gradient", "sum"):
                continue
            home, name = self.buffers[root]["home"], self.buffers[root]["name"]
            added, read = -1, len(self.steps)
            for step, _, kind in accesses:
                around = [self.loops[l] for l in self.turning(step, home)]
                if kind == "read":
                    read = min([read, step] + [l["step_first"] for l in around])
                    continue
                demand(kind == "accumulate" or not around,
                       f"{name} is written over in each turn")
                added = max([added, step] + [l["step_last"] for l in around])
            demand(added < read, f"{name} is read before it is complete")

    def storages(self):
        """(bytes, offset, first, last, roots) of each storage. Lifetimes of buffers in one storage are
        consecutive: the next starts at the step at which the previous one ends."""
        members = {}
        for root in set(self.roots):
            members.setdefault(self.buffers[root]["storage"], []).append(root)
        made = []
        for roots in members.values():
            lives = sorted((self.life(r), r) for r in roots)
            head = self.buffers[roots[0]]
            for root in roots:
                demand(self.space(root) == self.space(roots[0]),
                       f"buffers {roots} share a storage and not their space")
                same = self.buffers[root]
                demand((same["bytes"], same["offset"]) == (head["bytes"], head["offset"]),
                       f"buffers {roots} share a storage and not their bytes")
            for (before, a), (after, b) in zip(lives, lives[1:]):
                demand(before[1] == after[0],
                       f"buffer {b} takes the bytes of buffer {a} at step {after[0]}, which does "
                       f"not die there")
                self.check_handover(after[0], a, b)
            made.append((head["bytes"], head["offset"], lives[0][0][0],
                         max(life[1] for life, _ in lives), roots))
        return made

    def check_handover(self, step, dying, born):
        storage = self.buffers[born]["storage"]
        uses = [("read", self.roots[b]) for b in self.steps[step]["reads"]]
        uses += [(kind, self.roots[b]) for b, kind in self.steps[step]["writes"]]
        uses = sorted(use for use in uses if self.buffers[use[1]]["storage"] == storage)
        demand(uses == [("read", dying), ("write", born)],
               f"buffer {born} takes the bytes of buffer {dying} at step {step}, and is not alone")
        for root in (dying, born):
            demand(self.buffers[root]["home"] != -1
                   and not self.turning(step, self.buffers[root]["home"]),
                   f"step {step} turns again, and buffer {root} is gone or not yet there")

    def check_overlap(self, storages):
        ordered = sorted(storages, key=lambda s: s[2])
        for i, (bytes_a, offset_a, _, last_a, roots_a) in enumerate(ordered):
            for bytes_b, offset_b, first_b, _, roots_b in ordered[i + 1:]:
                if first_b > last_a:
                    break
                demand(self.space(roots_a[0]) != self.space(roots_b[0])
                       or offset_a + bytes_a <= offset_b or offset_b + bytes_b <= offset_a,
                       f"buffers {roots_a} and {roots_b} use the same bytes at step {first_b}")

    def sizes(self, storages, space):
        """The bytes and the floor of a space."""
        change, end = [0] * (len(self.steps) + 1), 0
        for bytes_, offset, first, last, roots in storages:
            if self.space(roots[0]) == space:
                change[first] += bytes_
                change[last + 1] -= bytes_
                end = max(end, offset + bytes_)
        alive = floor = 0
        for delta in change:
            alive += delta
            floor = max(floor, alive)
        return end, floor

    def check_spaces(self, storages):
        declared = {} if self.first else {
            line["name"]: (line["bytes"], line["floor_bytes"]) for line in self.plan["spaces"]}
        demand(self.first or len(declared) == len(self.plan["spaces"]), "a space is listed twice")
        used = {self.space(b) for b in range(len(self.buffers))} - {"host"}
        derived = {space: self.sizes(storages, space) for space in used}
        demand(declared == derived, f"spaces are {declared}, the buffers say {derived}")

    def check_sums(self, storages):
        self.check_spaces(storages)
        end, floor = self.sizes(storages, "host")
        demand(self.plan["floor_bytes"] == floor,
               f"floor_bytes is {self.plan['floor_bytes']}, the steps say {floor}")
        demand(self.plan["arena_bytes"] == end,
               f"arena_bytes is {self.plan['arena_bytes']}, the last byte is {end}")
        demand(all(line["bytes"] >= 0 for line in self.plan["process"]), "a line below zero")
        lines = sum(line["bytes"] for line in self.plan["process"])
        demand(self.plan["process_bytes"] == lines,
               f"process_bytes is {self.plan['process_bytes']}, its lines sum to {lines}")
        page = self.plan["machine"]["page_bytes"]
        arena = [line["bytes"] for line in self.plan["process"] if line["name"] == "arena"]
        demand(arena == [(end + page - 1) // page * page], f"the arena's line is {arena}")

    def check(self):
        self.check_loops()
        self.check_buffers()
        self.stands_for = {}  # (step, updated window): the buffer that was fetched into it
        if not self.first:
            self.check_transfers()
        self.check_state()
        self.check_parameters()
        self.check_gradients()
        storages = self.storages()
        self.check_overlap(storages)
        self.check_sums(storages)
