package beacon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
)

// A node that holds its answers back holds up no other one, is asked once, and is shown as slow. Its
// answer is used when it comes.
func TestSlowNode(t *testing.T) {
	for _, begun := range []bool{false, true} {
		f := follow(t, 2, nil)
		slow, start := f.nodes[0], f.nodes[0].Steps[0].Slot
		if begun {
			for ; len(f.named) < 2; start++ {
				_ = f.at(t, start)
			}
		}
		asked, named := slow.count(""), len(f.named)
		release := slow.stop()
		for slot := start; slot < start+14; slot++ {
			_ = f.at(t, slot)
		}
		s := f.Status()
		if len(f.named) < named+5 || s.Problem != "" || s.Nodes[1].Why != "" || s.Nodes[1].Slot < start+10 {
			t.Errorf("begun: %t: beside a slow node: %d heads, then %d, %+v", begun, named, len(f.named), s)
		}
		if !strings.Contains(s.Nodes[0].Why, "slow: no answer for 1m") || s.Nodes[0].Failures > 0 {
			t.Errorf("begun: %t: the slow node: %+v", begun, s.Nodes[0])
		}
		if more := slow.count("") - asked; more > 2 { // finality and optimistic side by side
			t.Errorf("begun: %t: the slow node was asked %d times: %v", begun, more, slow.asked)
		}
		release()
		_ = f.at(t, start+14)
		if s := f.Status(); s.Nodes[0].Slot < start+10 || begun && !strings.Contains(s.Nodes[0].Why, "slow: its last answer took 1m") {
			t.Errorf("begun: %t: the slow node has answered: %+v", begun, s.Nodes[0])
		}
		_ = f.at(t, start+15)
		if s := f.Status(); s.Nodes[0].Why != "" || s.Problem != "" {
			t.Errorf("begun: %t: the node is quick again: %+v", begun, s)
		}
	}
}

// A node that claims a header of a later committee has to give that committee: it is at fault if
// it does not, and no other node is asked because of it.
func TestClaimedCommittee(t *testing.T) {
	asked := func(lies bool) (int, NodeStatus) {
		f := follow(t, 2, nil)
		if lies {
			f.nodes[0].alter = func(path string, body []byte) []byte {
				text := strings.Replace(string(body), `"signature_slot":"`, `"signature_slot":"9`, 1)
				if path == "config/spec" { // by its clock that slot is past
					text = strings.NewReplacer(`"SLOT_DURATION_MS":"6000"`, `"SLOT_DURATION_MS":"100"`).Replace(text)
				} else if path == "beacon/light_client/updates" {
					text = "[]"
				}
				return []byte(text)
			}
		}
		start := f.nodes[0].Steps[0].Slot
		for slot := start; slot < start+24; slot++ {
			_ = f.at(t, slot)
		}
		if s := f.Status(); len(f.named) < 10 || s.Problem != "" {
			t.Errorf("lies: %t: %d heads, %+v", lies, len(f.named), s)
		}
		return f.nodes[1].count("updates"), f.Status().Nodes[0]
	}
	honest, _ := asked(false)
	beside, liar := asked(true)
	if beside > honest+3 { // it answers the searches of the other one
		t.Errorf("the honest node was asked for committees %d times, without the liar %d times", beside, honest)
	}
	if liar.Failures < 2 || !strings.Contains(liar.Why, errNoCommittee.Error()) {
		t.Errorf("the liar: %+v", liar)
	}
}

// The head does not wait for a store that refuses to save, and what is wrong is shown.
func TestFailingSave(t *testing.T) {
	f := follow(t, 1, nil)
	f.kept.full = errors.New("the disk is full")
	last := f.nodes[0].Steps[len(f.nodes[0].Steps)-1].Slot
	for slot := f.nodes[0].Steps[0].Slot; slot <= last; slot++ {
		_ = f.at(t, slot)
	}
	s := f.Status()
	if s.Finalized.Number <= 64 || s.Head.Number+3 < last || f.named[len(f.named)-1].Head != s.Head.Block || !strings.Contains(s.Problem, "the disk is full") {
		t.Errorf("%d heads, %+v", len(f.named), s)
	}
	f.kept.full = nil
	if err := f.at(t, last+1); err != nil || f.kept.saved.Slot != s.Finalized.Number {
		t.Errorf("after that %v, kept is %+v", err, f.kept.saved)
	}
}

// A head that could not be named is named again, also if there is no newer one.
func TestFailingName(t *testing.T) {
	f := follow(t, 1, nil)
	name, failure := f.config.Name, errors.New("the store is full")
	f.config.Name = func(context.Context, engine.Forkchoice) error { return failure }
	slot := f.nodes[0].Steps[0].Slot + 14
	if err := f.at(t, slot); !strings.Contains(err.Error(), failure.Error()) {
		t.Errorf("%v, expected %v", err, failure)
	}
	f.config.Name = name
	if err := f.at(t, slot); err != nil || len(f.named) != 1 {
		t.Errorf("%v, %d heads, expected the one that could not be named", err, len(f.named))
	}
}

// A node whose data is false is not asked until it has been set aside for a while. Its schedule is read
// again after an hour: it may have got the right one.
func TestScheduleIsReadAgain(t *testing.T) {
	f := follow(t, 1, nil)
	node, slots := f.nodes[0], func(d time.Duration) uint64 { return uint64(d / (6 * time.Second)) }
	node.alter = func(_ string, body []byte) []byte {
		return []byte(strings.ReplaceAll(string(body), `"0x06000001"`, `"0x06000002"`))
	}
	slot := node.Steps[0].Slot + 14
	if err := f.at(t, slot); err == nil || f.Status().Nodes[0].Invalid != 1 {
		t.Errorf("with a wrong schedule: %v, %+v", err, f.Status())
	}
	node.alter = nil
	asked := node.count("")
	if err := f.at(t, slot+slots(asideTime)-1); err == nil || node.count("") != asked {
		t.Errorf("set aside: %v, asked %d times more", err, node.count("")-asked)
	}
	if err := f.at(t, slot+slots(scheduleTime)); err != nil {
		t.Errorf("with the right schedule: %v", err)
	}
}

// A node that failed for long is asked again soon.
func TestNodeRecovers(t *testing.T) {
	f := follow(t, 1, nil)
	slot := f.nodes[0].Steps[0].Slot + 14
	f.nodes[0].alter = func(string, []byte) []byte { return nil } // it fails
	const slots = uint64(longestRest / (6 * time.Second))
	for range 50 {
		if err := f.at(t, slot); err == nil {
			t.Fatal("no failure")
		}
		slot += slots
	}
	failures := f.Status().Nodes[0].Failures
	if failures != 50 {
		t.Errorf("%d failures, expected one in each %v", failures, longestRest)
	}
	_ = f.at(t, slot-slots+1)
	if more := f.Status().Nodes[0].Failures; more != failures {
		t.Errorf("asked again before %v", longestRest)
	}
	f.nodes[0].alter = nil
	if err := f.at(t, slot); err != nil {
		t.Error(err)
	}
}

// A node that hides the block that was saved last does not make the client begin with an old
// checkpoint, unless no other node has it for a while. Nothing older than that block is then
// saved or named.
func TestOldCheckpoint(t *testing.T) {
	const days = 24 * 3600 / 6 // in slots
	wait := uint64(fallBackTime / (6 * time.Second))
	for name, test := range map[string]struct {
		known       bool // the chain is
		saved, now  uint64
		begins, end bool // at once; after some time
	}{
		"both new":          {true, 5 * days, 5*days + 10, true, true},
		"old":               {true, 29 * days, 30 * days, false, true},
		"both old":          {true, 10 * days, 30 * days, true, true},
		"clock of the node": {false, 5 * days, 5*days + 10, false, true},
		"newer than saved":  {false, 1, 30 * days, true, true},
	} {
		f := follow(t, 2, func(c *Config) {
			c.Keeper.(*memory).saved = Checkpoint{Root: common.Hash{1}, Slot: test.saved}
		})
		if test.known {
			f.config.Known = f.nodes[0].chain(t)
		}
		saved := f.kept.saved
		f.nodes[1].alter = func(string, []byte) []byte { return nil } // it fails
		for _, then := range []struct {
			slot   uint64
			begins bool
		}{{test.now, test.begins}, {test.now + wait - 1, test.begins}, {test.now + 2*wait, test.end}} {
			err := f.at(t, then.slot)
			if (f.store != nil) != then.begins || !then.begins && !strings.Contains(err.Error(), "the last finalized one") {
				t.Errorf("%s: in slot %d: begun: %t, %v", name, then.slot, f.store != nil, err)
			}
		}
		if test.saved > 1 && (len(f.named) > 0 || f.kept.saved != saved) {
			t.Errorf("%s: %d heads, kept is %+v", name, len(f.named), f.kept.saved)
		}
	}
}

// Run names heads while a node holds its answer back, and has ended all requests when it returns.
func TestRun(t *testing.T) {
	heads := make(chan struct{}, 1)
	f := follow(t, 2, func(c *Config) {
		c.Name = func(context.Context, engine.Forkchoice) error {
			select {
			case heads <- struct{}{}:
			default:
			}
			return nil
		}
	})
	f.nodes[0].stop()
	f.slot = f.nodes[0].Steps[0].Slot + 14
	for _, n := range f.nodes {
		n.until = f.slot
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	<-heads
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	waiting := 0
	for _, n := range f.Follower.nodes {
		if !n.since.IsZero() {
			waiting++
		}
	}
	if len(f.answers) != waiting {
		t.Errorf("%d nodes had not answered, %d requests have ended", waiting, len(f.answers))
	}
	if s := f.Status(); s.Head.Number == 0 || s.Nodes[0].Invalid > 0 || s.Nodes[1].Why != "" {
		t.Errorf("%+v", s)
	}
}
