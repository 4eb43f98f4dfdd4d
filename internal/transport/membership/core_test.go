package membership

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestCore runs the scripts under testdata/core. In a script, each line of a "run" is an event.
// The lines after an event show the new phase, if the phase has changed, and the coordinator's
// messages, except heartbeats, with their connections. After an intended change, "go test -run
// Core -rewrite" rewrites the files; the diff must be reviewed like code.
//
// Events; connections have the number of their process unless conn=N is given:
//
//	group processes=N [size=N detection=D stall=D join=D]   starts a new group
//	join P [ranks=1,2 at=ADDRESS from=IP via=IP processes=N size=N conn=N]
//	form                        all processes join; process P hosts rank P
//	wait D                      time passes, with ticks and heartbeats of the processes that run
//	asleep D                    time passes without ticks, and then there is one
//	stop P, continue P          process P becomes silent, and sends again
//	lose P [REASON]             connection P ends
//	rank R in SEQ TEXT [moved=N] [answer]   the process of rank R reports that R is in an operation
//	rank R after SEQ [answer]   the process of rank R reports that R is in no operation
//	                            both may have begun=SEQ:TEXT,SEQ:TEXT!: earlier operations of R; with !
//	                            the text is not sent again
//	rank R left SEQ             the process of rank R reports that R begins no more operations
//	fail P TEXT                 process P reports a failure
//	blame P RANK REASON [kind=left]   process P reports the failure of a rank
//	mismatch R TEXT other=RANK [seq=N]   rank R got a message of another operation
//	leave P [final]             process P sends a good-bye
//	give-up                     process 0 stops waiting for the others
//	replaced N                  a later attempt begins in process 0
func TestCore(t *testing.T) {
	paths, err := filepath.Glob("testdata/core/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s := newScript()
				for line := range strings.Lines(d.Input) {
					if err := s.event(strings.TrimSpace(line)); err != nil {
						d.Fatalf(t, "%s: %v", line, err)
					}
				}
				return s.b.String()
			})
		})
	}
}

// script drives a core through virtual time.
type script struct {
	b       strings.Builder
	c       *core
	now     time.Duration
	stopped map[int]bool
}

func newScript() *script { return &script{stopped: map[int]bool{}} }

// args has the words of an event: named has the words of the form key=value, and words has all
// other words, in order.
type args struct {
	words []string
	named map[string]string
}

func (a *args) num(key string, or int) int {
	if v, ok := a.named[key]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		return n
	}
	return or
}

func (a *args) str(key, or string) string {
	if v, ok := a.named[key]; ok {
		return v
	}
	return or
}

func (a *args) dur(key string, or time.Duration) time.Duration {
	if v, ok := a.named[key]; ok {
		d, err := time.ParseDuration(v)
		if err != nil {
			panic(err)
		}
		return d
	}
	return or
}

// at returns word i as a number.
func (a *args) at(i int) int {
	n, err := strconv.Atoi(a.words[i])
	if err != nil {
		panic(err)
	}
	return n
}

// rest returns the words from index i on, joined by spaces.
func (a *args) rest(i int) string { return strings.Join(a.words[i:], " ") }

func parseArgs(line string) *args {
	a := &args{named: map[string]string{}}
	for _, w := range strings.Fields(line) {
		if key, value, ok := strings.Cut(w, "="); ok {
			a.named[key] = value
		} else {
			a.words = append(a.words, w)
		}
	}
	return a
}

// event passes the event in line to the core, and writes the result to s.b.
func (s *script) event(line string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	a := parseArgs(line)
	fmt.Fprintf(&s.b, "%v %s\n", s.now, line)
	switch a.words[0] {
	case "group":
		n := a.num("processes", 1)
		s.c = newCore(settings{
			processes: n, size: a.num("size", n),
			detection: a.dur("detection", 4*time.Second), stall: a.dur("stall", 4*time.Second), join: a.dur("join", 30*time.Second),
		})
		s.now = 0
	case "join":
		s.join(a)
	case "form":
		for p := range s.c.processes {
			s.join(parseArgs(fmt.Sprintf("join %d", p)))
		}
	case "wait":
		s.wait(a)
	case "asleep":
		d, err := time.ParseDuration(a.words[1])
		if err != nil {
			return err
		}
		s.now += d
		s.do(func() []command { return s.c.tick(s.now) })
	case "stop":
		s.stopped[a.at(1)] = true
	case "continue":
		delete(s.stopped, a.at(1))
		s.receive(a.at(1), beat{})
	case "lose":
		reason := a.rest(2)
		if reason == "" {
			reason = "closed its connection"
		}
		s.do(func() []command { return s.c.lose(s.now, a.at(1), reason, nil) })
	case "rank":
		s.standing(a)
	case "fail":
		s.receive(a.at(1), report{cause: errors.New(a.rest(2))})
	case "blame":
		e := &PeerError{Rank: a.at(2), Reporter: a.at(1), Reason: a.rest(3)}
		if a.str("kind", "") == "left" {
			e.Kind = ErrLeft
		}
		s.receive(a.at(1), report{cause: e})
	case "mismatch":
		m := report{cause: &MismatchError{Rank: a.at(1), Doing: a.rest(2), Other: a.num("other", 0)}, seq: uint64(a.num("seq", 0))}
		s.receive(s.host(a.at(1)), m)
	case "leave":
		s.receive(a.at(1), goodbye{final: len(a.words) > 2})
	case "give-up":
		s.do(func() []command { return s.c.giveUp(errors.New("context canceled")) })
	case "replaced":
		s.do(func() []command { return s.c.replaced(uint32(a.at(1))) })
	default:
		return fmt.Errorf("no event")
	}
	return nil
}

func (s *script) join(a *args) {
	p := a.at(1)
	h := hello{
		process: p, processes: a.num("processes", s.c.processes), size: a.num("size", s.c.size),
		address: a.str("at", fmt.Sprintf("host%d:7", p)),
	}
	for _, r := range strings.Split(a.str("ranks", a.words[1]), ",") {
		if r != "none" {
			h.ranks = append(h.ranks, (&args{words: []string{r}}).at(0))
		}
	}
	var from, via netip.Addr
	if v := a.str("from", ""); v != "" {
		from = netip.MustParseAddr(v)
		via = netip.MustParseAddr(a.str("via", v))
	}
	s.do(func() []command { return s.c.handleHello(s.now, a.num("conn", p), h, from, via) })
}

// wait lets time pass, with ticks. Processes that are not stopped send heartbeats and empty
// states.
func (s *script) wait(a *args) {
	d, err := time.ParseDuration(a.words[1])
	if err != nil {
		panic(err)
	}
	end := s.now + d
	for next := s.now + s.c.watch.Period; next <= end; next += s.c.watch.Period {
		s.now = next
		if s.now%s.c.watch.Beat == 0 && s.c.phase != forming {
			for p := range s.c.processes {
				if !s.stopped[p] {
					s.receive(p, beat{})
					s.receive(p, state{})
				}
			}
		}
		s.do(func() []command { return s.c.tick(s.now) })
	}
	s.now = end
}

func (s *script) standing(a *args) {
	answer := false
	if i := slices.Index(a.words, "answer"); i > 0 {
		answer = true
		a.words = slices.Delete(a.words, i, i+1)
	}
	r := rankState{rank: a.at(1), seq: uint64(a.at(3)), inside: a.words[2] == "in", left: a.words[2] == "left", progress: uint64(a.num("moved", 0))}
	if r.inside {
		r.text = a.rest(4)
		r.hash = hashOf(r.text)
	}
	if list := a.str("begun", ""); list != "" {
		for i, b := range strings.Split(list, ",") {
			seq, text, _ := strings.Cut(b, ":")
			text, told := strings.CutSuffix(text, "!")
			r.begun[i] = pastOp{uint64((&args{words: []string{seq}}).at(0)), hashOf(text), text}
			if told {
				r.begun[i].text = ""
			}
		}
	}
	s.receive(s.host(r.rank), state{answer: answer, ranks: []rankState{r}})
}

// host returns the process that hosts a rank.
func (s *script) host(rank int) int {
	if s.c.ranks == nil {
		return rank
	}
	return s.c.ranks[rank].process
}

// hashOf returns the hash of an operation, which depends only on its text. It is 0 for
// point-to-point operations.
func hashOf(text string) uint64 {
	if strings.HasPrefix(text, "Send") || strings.HasPrefix(text, "Recv") {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

func (s *script) receive(conn int, m message) {
	s.do(func() []command { return s.c.receive(s.now, conn, m) })
}

// do runs an event and writes the resulting commands to s.b. Equal messages are written once,
// with all their connections.
func (s *script) do(event func() []command) {
	before := s.c.phase
	var texts []string
	to := map[string][]string{}
	for _, cmd := range event() {
		var text string
		switch m := cmd.message.(type) {
		case nil:
			text = "end"
		case beat:
			continue
		case waiting:
			text = m.missing
		case welcome:
			text = fmt.Sprintf("welcome %v", m.table)
		case refuse:
			text = fmt.Sprintf("refused: %v", m.cause)
		case abort:
			text = fmt.Sprintf("abort: %v", m.cause)
			if k := kindOf(m.cause); k > 0 {
				text += fmt.Sprintf(" [%v]", kinds[k])
			}
		case ask:
			text = fmt.Sprintf("ask for rank %d", m.rank)
		default:
			text = strings.TrimPrefix(fmt.Sprintf("%T", m), "membership.")
		}
		if to[text] == nil {
			texts = append(texts, text)
		}
		to[text] = append(to[text], strconv.Itoa(cmd.conn))
	}
	if s.c.phase != before {
		fmt.Fprintf(&s.b, "  %v is %v\n", s.now, s.c.phase)
	}
	for _, text := range texts {
		fmt.Fprintf(&s.b, "  to %s: %s\n", strings.Join(to[text], " "), text)
	}
}

// TestPhases compares the allowed transitions between phases with the diagram in the comment of
// core.
func TestPhases(t *testing.T) {
	allowed := map[[2]phase]bool{
		{forming, running}: true, {forming, failed}: true,
		{running, deciding}: true, {running, failed}: true, {running, ended}: true,
		{deciding, failed}: true,
	}
	for from := forming; from <= ended; from++ {
		for to := forming; to <= ended; to++ {
			c := &core{phase: from}
			if allowed[[2]phase{from, to}] {
				require.NotPanics(t, func() { c.enter(to) }, "%v to %v", from, to)
			} else {
				require.Panics(t, func() { c.enter(to) }, "%v to %v", from, to)
			}
		}
	}
}
