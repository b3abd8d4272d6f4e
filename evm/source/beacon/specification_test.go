package beacon

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"slices"
	"strings"
	"testing"

	"ashlar/evm/source/beacon/lightclient"
	"ashlar/internal/beaconnode"

	"github.com/ethereum/go-ethereum/common"
)

// recorded is what a light client was given on a chain that the executable specification made,
// and what the specification's own light client made of it.
type recorded struct {
	Spec    spec
	Genesis struct {
		Time uint64      `json:"genesis_time,string"`
		Root common.Hash `json:"genesis_validators_root"`
	}
	Trusted   common.Hash
	Bootstrap versioned
	Steps     []step
}

// step is an update with the specification's store after it.
type step struct {
	versioned
	Slot            uint64 `json:",string"` // by the clock
	Accepted        bool
	Finalized, Head common.Hash
	Next            bool
}

func (r *recorded) chain(t *testing.T) *lightclient.Chain {
	t.Helper()
	chain, err := readSpec(r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	chain.GenesisTime, chain.GenesisValidatorsRoot = r.Genesis.Time, r.Genesis.Root
	return chain
}

func (r *recorded) begin(t *testing.T, chain *lightclient.Chain) *lightclient.Store {
	t.Helper()
	b := new(lightclient.Bootstrap)
	if err := r.Bootstrap.decode(b); err != nil {
		t.Fatal(err)
	}
	store, err := lightclient.Begin(chain, r.Trusted, b)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (s *step) update(t *testing.T) *lightclient.Update {
	t.Helper()
	u := new(lightclient.Update)
	if err := s.decode(u); err != nil {
		t.Fatal(err)
	}
	return u
}

// chains are the recorded chains: of the forks of public networks, with a second period of sync
// committees for the first, and one that goes through all forks that changed light client data.
var chains = []struct {
	epochs int
	forks  []string
}{
	{12, []string{"fulu=0"}},
	{4, []string{"gloas=0"}},
	{14, []string{"capella=0", "deneb=3", "electra=5", "fulu=7", "gloas=9"}},
}

// eachChain runs a test on each recorded chain.
func eachChain(t *testing.T, test func(*testing.T, *recorded)) {
	for _, c := range chains {
		t.Run(strings.Join(c.forks, " "), func(t *testing.T) {
			r := new(recorded)
			if err := json.Unmarshal(beaconnode.Vectors(t, c.epochs, c.forks...), r); err != nil {
				t.Fatal(err)
			}
			test(t, r)
		})
	}
}

// A light client takes over what the specification's takes over.
func TestSpecification(t *testing.T) {
	eachChain(t, func(t *testing.T, r *recorded) {
		chain := r.chain(t)
		store := r.begin(t, chain)
		moved := 0
		for i := range r.Steps {
			s := &r.Steps[i]
			before := store.Head().Beacon.Slot
			err := store.Update(chain, s.update(t), s.Slot)
			if s.Accepted != (err == nil) && !errors.Is(err, lightclient.ErrNothingNew) {
				t.Fatalf("step %d in slot %d: accepted by the specification: %t, here: %v", i, s.Slot, s.Accepted, err)
			}
			head, finalized := store.Head().Beacon.Root(), store.Finalized().Beacon.Root()
			if head != s.Head || finalized != s.Finalized || store.KnowsNext() != s.Next {
				t.Fatalf("step %d in slot %d: head %#x, finalized %#x, next committee known: %t; expected %#x, %#x, %t (%v)", i, s.Slot, head, finalized, store.KnowsNext(), s.Head, s.Finalized, s.Next, err)
			}
			if store.Head().Beacon.Slot > before {
				moved++
			}
		}
		if moved < 10 || store.Finalized().Beacon.Slot == 0 {
			t.Errorf("the head has moved %d times, to slot %d, finalized %d", moved, store.Head().Beacon.Slot, store.Finalized().Beacon.Slot)
		}
		if last := r.Steps[len(r.Steps)-1].Slot; last >= 90 && store.FinalizedPeriod() == 0 {
			t.Errorf("the finalized header is in period 0, in slot %d", last)
		}
		t.Logf("%d updates, head in slot %d of period %d, finalized %d", len(r.Steps), store.Head().Beacon.Slot, store.Period(store.Head().Beacon.Slot), store.Finalized().Beacon.Slot)
	})
}

// Whatever is altered in a valid bootstrap or update, it is refused.
func TestAlteredDataIsRefused(t *testing.T) {
	eachChain(t, func(t *testing.T, r *recorded) {
		chain := r.chain(t)
		alter(t, r.Bootstrap.Data, func(what string, data json.RawMessage) {
			b := new(lightclient.Bootstrap)
			if json.Unmarshal(data, b) == nil {
				if _, err := lightclient.Begin(chain, r.Trusted, b); !errors.Is(err, lightclient.ErrFalse) && !errors.Is(err, lightclient.ErrUnknownFork) {
					t.Errorf("bootstrap with an altered %s: %v", what, err)
				}
			}
		})
		// The last update with a next committee, and the last one of all.
		with := slices.IndexFunc(r.Steps, func(s step) bool { return s.Accepted && s.Next })
		for _, i := range []int{with, len(r.Steps) - 1} {
			if i < 0 {
				continue
			}
			before := r.begin(t, chain)
			for j := range i {
				_ = before.Update(chain, r.Steps[j].update(t), r.Steps[j].Slot)
			}
			alter(t, r.Steps[i].Data, func(what string, data json.RawMessage) {
				u := new(lightclient.Update)
				if json.Unmarshal(data, u) != nil {
					return
				}
				store := *before
				if what == ".signature_slot" {
					// The signature does not cover it: it says which committee and fork signed.
					return
				}
				head, finalized, next := store.Head().Beacon, store.Finalized().Beacon, store.KnowsNext()
				if err := store.Update(chain, u, r.Steps[i].Slot); err == nil {
					t.Errorf("update %d with an altered %s was taken over", i, what)
				}
				if store.Head().Beacon != head || store.Finalized().Beacon != finalized || store.KnowsNext() != next {
					t.Errorf("update %d with an altered %s was refused and has changed the store", i, what)
				}
			})
		}
	})
}

// alter calls try with each value of an object altered in turn: a text by a bit in its middle, a
// number by one; of lists with many members, the first, one in the middle and the last.
func alter(t *testing.T, data json.RawMessage, try func(what string, altered json.RawMessage)) {
	t.Helper()
	var root any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	count := 0
	attempt := func(path string) {
		altered, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		count++
		try(path, altered)
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				walk(path+"."+name, member, func(to any) { v[name] = to })
			}
		case []any:
			for _, i := range slices.Compact([]int{0, len(v) / 2, len(v) - 1}) {
				walk(fmt.Sprintf("%s[%d]", path, i), v[i], func(to any) { v[i] = to })
			}
			if text, ok := v[len(v)-1].(string); !ok || strings.Trim(text, "0x") != "" { // else it is absent
				set(v[:len(v)-1])
				attempt(path + " without its last")
				set(v)
			}
		case string:
			set(alteredText(v))
			attempt(path)
			set(v)
		default:
			t.Fatalf("%s is %T", path, v)
		}
	}
	walk("", root, nil)
	if count < 10 {
		t.Fatalf("%d values were altered", count)
	}
}

func alteredText(text string) string {
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		if hex == "" {
			return "0x00"
		}
		at := len(hex) / 2
		digit := "1032547698badcfe"[strings.IndexByte("0123456789abcdef", hex[at])]
		return "0x" + hex[:at] + string(digit) + hex[at+1:]
	}
	n, _ := new(big.Int).SetString(text, 10)
	return n.Add(n, big.NewInt(1)).String()
}
