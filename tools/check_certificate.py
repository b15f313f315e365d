"""Does a replayed certificate prove what it claims? One file, with mpmath alone: python tools/check_certificate.py FILE
FILE is a certificate, a trained model or a report that holds one, as JSON or as HTML. Of a page, its text is not looked at.

Nothing of lastiterate is used, and 50 digits are kept. What the steps are, the certificate says; that they are those of your
run, `lastiterate verify` says. The mathematics: docs/proofs.md. A bound z on the hidden distance of two neighbouring runs
goes to lipschitz·z + sensitivity at each step; a payment a takes a from it and costs (a/noise)²; μ² is the sum of the costs,
and of prior_mu², for what was released before training.
Below 0, z is prepaid: it goes to c·z, give or take q·|z|, and must be kept until the record's turn comes.
"""

import json
import sys
from itertools import pairwise

from mpmath import e, erfc, exp, gammainc, inf, log, mp, mpf, sqrt

mp.dps = 50


def number(value):
    return inf if value is None else mpf(value)


def values(content, count):
    """[[value, how often], …], which repeats if it is a pattern."""
    pairs = content["pattern"] if isinstance(content, dict) else content
    listed = [number(value) for value, times in pairs for _ in range(times)]
    if (len(listed) != count and not isinstance(content, dict)) or not all(value >= 0 for value in listed):
        raise ValueError("a list is too short, or too long, or has an entry below 0")
    return [listed[at % len(listed)] for at in range(count)]


def layouts(steps, pushes):
    """Ways to write down the steps of a record with these pushes, from its first turn on; a proof in any of them holds."""
    turns = sorted(pushes)
    dense = [(pushes.get(at, mpf(0)), *steps[at]) for at in range(turns[0], len(steps))]
    if any(factor == inf for _, _, factor in dense):
        return [[(pushes[at], steps[at][0], inf) for at in turns]]  # nothing may be left between two turns
    merged = []
    for at, following in pairwise([*turns, len(steps)]):
        merged.append((pushes[at], *steps[at]))
        factor, square = mpf(1), mpf(0)
        for noise, lipschitz in reversed(steps[at + 1 : following]):
            factor, square = factor * lipschitz, square + (noise * factor) ** 2
        if following > at + 1:
            merged.append((mpf(0), sqrt(square), factor))
    return [dense, merged]


def following(steps, payment, count):
    """In proportion to noise²·(product of the Lipschitz constants that follow)."""
    found = [payment][:count]
    for (_, before, _), (_, noise, factor) in pairwise(steps[:count]):
        found.append(found[-1] * (noise / before) ** 2 / factor)
    return found


def cost(steps, diameter, schedule):
    """μ² of the payments, or ∞ if they are not for these steps."""
    start, due = schedule["start"], []
    for length, wait, first, times in schedule["blocks"]:
        for _ in range(times):
            due += [*[mpf(0)] * wait, *following(steps[start + len(due) + wait :], mpf(first), length - 1 - wait), inf]
    if len(due) != len(steps) - start or min(due) < 0 or not 0 <= start < len(steps):
        return inf
    left, total = diameter if start and steps[start][2] else mpf(0), mpf(0)
    for (push, noise, factor), payment in zip(steps[start:], due, strict=True):
        left = (factor * left if left else mpf(0)) + push
        paid = min(left, payment)
        left, total = left - paid, total + (paid / noise) ** 2
    return total


def turns_of(places, first, last, proof, steps):
    """{turn: push} of a record at these places, between two releases; its worst, where each epoch has a new order.

    At the first of two places the record is beside any other, and may push `exchange` times as far as beside its neighbour.
    """
    every, count = proof["turns"]["every"], proof["steps"]["count"]
    times = {places[0]: exchange(proof)} if len(places) > 1 else {}
    if proof["turns"]["order"] == "fixed":
        turns = [at for at in range(first, last) if at % every in places]
        return {at: steps[at][0] * times.get(at % every, 1) for at in turns}
    ends = [*range((first // every + 1) * every, last, every), last]
    found = {}
    for begin, end in pairwise([first, *ends]):
        carried = mpf(0)  # a turn inside the piece, grown until its end
        for at in range(begin, end):
            carried = max(carried * steps[at][2], steps[at][0])
        found[end - 1] = carried
    if last == count and proof["turns"]["averaged"]:
        del found[last - 1]
        for place in places:
            if place >= 0:
                at = (ends[-2] if len(ends) > 1 else first) + place
                found[at] = steps[at][0] * times.get(place, 1)
    return found


def exchange(proof):
    times = mpf(proof["turns"].get("exchange", 1))
    if not times >= 1:
        raise ValueError("a record pushes no less beside others than beside its neighbour")
    return times


def length_of_noise(rank, probability):
    """Which a normal vector of this dimension exceeds with this probability."""
    low, high = mpf(0), sqrt(rank) + sqrt(-2 * log(probability))
    for _ in range(150):
        middle = (low + high) / 2
        if gammainc(mpf(rank) / 2, middle**2 / 2, regularized=True) <= probability:
            high = middle
        else:
            low = middle
    return high


def keeping(proof, steps):
    """For each step (c, q): what is prepaid is multiplied by c, give or take q; q knows how far the push may turn."""
    facts, count = proof["prepaid"], len(steps)
    names = ("center", "radius", "movement", "decay")
    center, radius, movement, decay = (values(facts[name], count) for name in names)
    if not (0 < facts["slack"] < 1 and min(center) > 0 and max(decay) <= 1 and facts["functions"] >= 1) or (
        min(facts["turning"], facts["start"], facts["largest"]) < 0
    ):
        raise ValueError("what it says of prepayment makes no sense")
    if "hidden" in proof and facts["functions"] < 3:
        raise ValueError("two records that change places make three different pushes")
    longest = length_of_noise(facts["rank"], mpf(facts["slack"]) / (count * facts["functions"]))
    largest, far, variance, moved = mpf(facts["largest"]), mpf(facts["start"]), mpf(0), []
    alike = len({(*step, *rest) for step, *rest in zip(steps, movement, decay, center, radius, strict=True)}) == 1
    for (_, noise, _), way, lost in zip(steps, movement, decay, strict=True):
        if lost and alike and center[0] <= 1:  # in closed form
            back = mpf(facts["start"]) * lost + longest * noise * sqrt(2 / (2 - lost))
            moved.append(2 * (way + largest) + back)
            continue
        moved.append(way + largest + lost * far + longest * sqrt(noise**2 + lost**2 * variance))
        stays = 1 - lost * (1 - mpf(10) ** -11)  # decay is rounded up
        far, variance = stays * far + way + largest, stays**2 * variance + noise**2
    turned = [moved[0] if alike else mpf(0), *moved[:-1]]
    return [
        (c, w + c * number(facts["turning"]) * turn) for c, w, turn in zip(center, radius, turned, strict=True)
    ], max(decay) > 0


def path(steps, kept, segments):
    """What is left after each step, or, below 0, prepaid."""
    payments, settled, found = [], set(), []
    for length, paying_off, last, done in segments:
        cut = range(len(payments), len(payments) + length)
        r = [number(last)]
        for at in reversed(cut[1:]):
            r.append(r[-1] * (steps[at][2] if paying_off else max(kept[at][0] - kept[at][1], mpf(0))))
        payments += [one * steps[at][1] ** 2 for one, at in zip(reversed(r), cut, strict=True)]
        settled |= {len(payments) - 1} if done else set()
    left = mpf(0)
    for at, ((push, _, factor), (c, q), paid) in enumerate(zip(steps, kept, payments, strict=True)):
        left = ((factor if left > 0 else max(c - q, mpf(0))) * left if left else mpf(0)) + push - paid
        left = mpf(0) if at in settled else left
        found.append(left)
    found[-1] = mpf(0)
    for at in range(len(steps) - 1, 0, -1):
        if found[at - 1] < 0:
            (push, _, _), (c, q) = steps[at], kept[at]
            found[at - 1] = -min(-found[at - 1], (max(-found[at], mpf(0)) + push) / c) if c > q else mpf(0)
    return found


def cost_of_path(steps, kept, segments, rough, largest, decaying):
    """μ of a path that may prepay, or ∞ where a payment is larger than it may be."""
    total, more, before = mpf(0), mpf(0), mpf(0)
    for step, (c, q), extra, after in zip(steps, kept, rough, path(steps, kept, segments), strict=True):
        push, noise, factor = step
        prepaid, rest = max(-before, mpf(0)), max(before, mpf(0))
        grown = factor * rest if rest else mpf(0)
        paid = max(push + max(-after, mpf(0)) - c * prepaid + q * prepaid + grown - max(after, mpf(0)), mpf(0))
        if (after < 0 or decaying) and paid + max(rough) > largest * (1 + mpf(10) ** -9):
            return inf
        total, before = total + (paid / noise) ** 2, after
        more += (extra / noise) ** 2 if push else 0
    return sqrt(total) + sqrt(more)


def prepaid_mu(places, parts, proof, steps, kept, decaying):
    total = mpf(0)
    rough, largest = values(proof["prepaid"]["rough"], len(steps)), mpf(proof["prepaid"]["largest"])
    rough = [one * (exchange(proof) if len(places) > 1 else 1) for one in rough]
    for (first, last), part in zip(pairwise([0, *proof["turns"]["releases"], len(steps)]), parts, strict=True):
        if pushes := turns_of(places, first, last, proof, steps):
            stretch = [(pushes.get(at, mpf(0)), *steps[at][1:]) for at in range(first, last)]
            cut = slice(first, last)
            total += cost_of_path(stretch, kept[cut], part["segments"], rough[cut], largest, decaying) ** 2
    return sqrt(total)


def mu(places, parts, proof, steps, diameter):
    total = mpf(0)
    for (first, last), part in zip(pairwise([0, *proof["turns"]["releases"], len(steps)]), parts, strict=True):
        if pushes := {at - first: push for at, push in turns_of(places, first, last, proof, steps).items()}:
            stretch = [(noise, factor) for _, noise, factor in steps[first:last]]
            total += min(cost(layout, diameter, part) for layout in layouts(stretch, pushes) if part)
    return sqrt(total) + 2 * mpf(proof["displacement"])


def weight_of_places(proof):
    """How likely a record is to be at a place of an epoch, of which the last may have a smaller batch."""
    every, (usual, last) = proof["turns"]["every"], proof["turns"].get("sizes", (1, 1))
    if not 1 <= last <= usual:
        raise ValueError("the last batch of an epoch is not larger than the others")
    return lambda place: mpf(last if place == every - 1 else usual) / (usual * (every - 1) + last)


def last_piece(proof):
    """Where the steps begin that came after the last epoch had begun, and after the last release."""
    turns, count = proof["turns"], proof["steps"]["count"]
    return max([(count - 1) // turns["every"] * turns["every"], *turns["releases"]])


def rising(steps, first, every):
    """Within an epoch nothing grows and no push is smaller than the one before, so that a later turn is no better."""
    pairs = ((steps[at - 1], steps[at]) for at in range(first + 1, len(steps)) if at % every)
    return all(before[0] <= after[0] and after[2] <= 1 for before, after in pairs)


def classes(proof, steps):
    """Places of which a later one is no better: an earlier may be counted as a later one. And how many others there are."""
    turns, count = proof["turns"], proof["steps"]["count"]
    every, alike = turns["every"], all(step == steps[0] for step in steps)
    if turns["order"] == "fixed":
        together = alike or (turns["averaged"] and rising(steps, 0, every))
        if together and not turns["releases"]:
            return ([range(count % every), range(count % every, every)], 0) if turns["averaged"] else ([range(1)], 0)
        return [range(at, at + 1) for at in range(every if turns["averaged"] else min(every, count))], 0
    piece = count - last_piece(proof)
    if not turns["averaged"]:
        return [range(piece - 1, piece)], 0
    together = rising(steps, last_piece(proof), every)
    return ([range(piece)] if together else [range(at, at + 1) for at in range(piece)]), every - piece


def prepaid_classes(proof, steps, kept):
    """The same where something may be prepaid: a later place is no better if no step brings anything apart."""
    turns, count = proof["turns"], proof["steps"]["count"]
    lasting = len(set(kept[1:])) <= 1 and all(c <= 1 for c, _ in kept)
    alike = lasting and all(step == steps[0] for step in steps)
    if turns["order"] != "fixed" and not alike:
        raise ValueError("with a new order each epoch all steps have to be alike")
    if turns["order"] != "fixed" or (alike and steps[0][2] <= 1):
        factor, rough = min(steps[0][2], mpf(1)), max(values(proof["prepaid"]["rough"], count))
        most = steps[0][0] * (1 + factor) / (1 + factor**count) + rough
        if mpf(proof["prepaid"]["largest"]) < most * (exchange(proof) if "hidden" in proof else 1):
            raise ValueError("payments at other places may be larger than the largest it names")
        return classes(proof, steps)
    places = turns["every"] if turns["averaged"] else min(turns["every"], count)
    return [range(at, at + 1) for at in range(places)], 0


def pair_finder(pairs, given, groups, together, times):
    """μ of a record at one place against its neighbour at another: of a pair of places that both are no earlier.

    Where the record pushes farther at one of them, the worse of both orders.
    """
    if not all(0 <= min(pair) < max(pair) and (times > 1 or pair[0] < pair[1]) for pair in pairs):
        raise ValueError("a pair is not of two places, in order")

    def stands(later, place):
        return later == place or (place < later and together and any({place, later} <= {*one} for one in groups))

    def proved(at, beside):
        found = [
            shift
            for (first, second), shift in pairs.items()
            if stands(first, at) and stands(second, beside) and (first < second) == (at < beside)
        ]
        return min(found, default=inf)

    def found(*places):
        low, high = sorted(places)
        if times > 1:
            return inf if low < 0 else max(proved(low, high), proved(high, low))
        return given[high] if low < 0 else proved(low, high)

    return found


def hidden(epsilon, weights, given, listed, pair):
    """δ if y = share·e^ε: places with less than 1 give the rest to those with more, to all in the same proportions."""
    shares = {place: mpf(share) for place, share in listed}
    spare = {place: weight * (1 - shares[place]) for place, weight in weights.items() if shares[place] < 1}
    asked = sum(weight * (shares[place] - 1) for place, weight in weights.items() if shares[place] > 1)
    if asked > sum(spare.values()) or min(shares.values()) < 0 or not weights:
        return mpf(1)
    total = mpf(0)
    for place, weight in weights.items():
        share = shares[place]
        level = epsilon + log(share) if share else -inf
        total += weight / max(share, 1) * gap(level, given[place])
        if share > 1:
            others = sum(part * gap(level, pair(place, other)) for other, part in spare.items())
            total += weight * (1 - 1 / share) * others / sum(spare.values())
    return total


def check(certificate):
    """The reason why it is rejected, or nothing."""
    proof, claim = certificate["proof"], certificate["claim"]
    count, turns = proof["steps"]["count"], proof["turns"]
    steps = list(
        zip(*(values(proof["steps"][name], count) for name in ("sensitivity", "noise", "lipschitz")), strict=True)
    )
    diameter = number(proof["steps"]["diameter"])
    if "prepaid" in proof:
        kept = keeping(proof, steps)
        groups, absent = prepaid_classes(proof, steps, kept[0])
    else:
        kept, (groups, absent) = None, classes(proof, steps)

    beforehand = number(proof.get("prior_mu", 0))
    if not 0 <= beforehand < inf:
        raise ValueError("prior_mu is no number of at least 0")

    def measured(places, parts):
        if kept is None:
            training = mu(places, parts, proof, steps, diameter)
        else:
            training = prepaid_mu(places, parts, proof, steps, *kept)
        return sqrt(training**2 + beforehand**2)

    given = {one["place"]: measured([one["place"]], one["parts"]) for one in proof["schedules"]}
    if not turns["averaged"]:
        last = (count - 1) % turns["every"]  # with all steps alike the worst place is that of the last step
        wanted = [last] if groups == [range(1)] else [at for group in groups for at in group]
        worst, weights = max(given.get(at, inf) for at in wanted), {}
    else:
        worst, weights = inf, {}
        size, first = weight_of_places(proof), last_piece(proof) if turns["order"] != "fixed" else 0
        for group in groups:
            for at in group:
                later = min(place for place in given if place in group and place >= at)
                weights[later] = weights.get(later, mpf(0)) + size((first + at) % turns["every"])
        if absent:
            weights[-1] = 1 - sum(weights.values())
    slack = mpf(proof["prepaid"]["slack"]) if "prepaid" in proof else mpf(0)
    if not (inf if slack else worst) <= number(claim["mu"]):
        return "mu is not proved"
    epsilon, delta = number(claim["epsilon"]), mpf(claim["delta"])
    away = 16 * mpf(proof["displacement"]) if slack else mpf(0)  # what is computed is a little away from what is proved
    before = epsilon - 2 * away
    if before < 0:
        return "epsilon is too small for what rounding adds"
    listed = proof.get("hidden", {"shares": [(at, 1) for at in weights], "pairs": []})
    pairs = {(*one["places"],): measured(one["places"], one["parts"]) for one in listed["pairs"]}
    begun = last_piece(proof) if turns["order"] != "fixed" else 0
    finder = pair_finder(pairs, given, groups, rising(steps, begun, turns["every"]), exchange(proof))
    averaged = turns["averaged"] or "hidden" in proof
    total = hidden(before, weights, given, listed["shares"], finder) if averaged else gap(before, worst)
    total = e**away * (total + slack)
    if away:
        total += (1 + e ** (away + before)) * gap(away, mpf(proof["displacement"]))
    return "" if epsilon >= 0 and total <= delta < 1 else f"at this epsilon it proves delta = {float(total)}"


def gap(epsilon, shift):
    """How far N(shift, 1) sticks out of e^ε·N(0, 1)."""
    if shift in (0, inf) or epsilon in (-inf, inf):
        return mpf(epsilon < inf) if shift == inf else max(1 - exp(epsilon), mpf(0))
    tail = [erfc((epsilon / shift + sign * shift / 2) / sqrt(2)) / 2 for sign in (-1, 1)]
    return tail[0] - (e ** (epsilon + log(tail[1])) if tail[1] else 0)


def judged(certificate):
    """The reason why it is rejected, or nothing."""
    try:
        return check(certificate) if certificate["grade"] == "replayed" else "its grade is not: replayed"
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return f"it cannot be followed: {error!r}"


def certificate_in(text):
    """The certificate itself, or the one that a page or a model holds."""
    _, begins, rest = text.partition('<script type="application/json" id="certificate">')
    content = json.loads(rest.partition("</script>")[0] if begins else text)
    return content if "format" in content else content["certificate"]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = certificate_in(file.read())
    reason = judged(found)
    print(f"rejected: {reason}" if reason else f"accepted: {found['claim']}")
    sys.exit(1 if reason else 0)
