package execute

import (
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// TestUnknownFork schedules every fork that go-ethereum has by time, one after the other:
// a fork is named exactly if blocks of its time are refused.
func TestUnknownFork(t *testing.T) {
	const when = 4_000_000_000
	kind := reflect.TypeFor[params.ChainConfig]()
	forks, unknown := 0, 0
	for i := range kind.NumField() {
		if !strings.HasSuffix(kind.Field(i).Name, "Time") {
			continue
		}
		forks++
		config := *params.AllDevChainProtocolChanges
		config.AmsterdamTime, config.BogotaTime, config.UBTTime = nil, nil, nil
		at := uint64(when)
		reflect.ValueOf(&config).Elem().Field(i).Set(reflect.ValueOf(&at))
		refused := unknownRules(&config, config.Rules(big.NewInt(1), true, when))
		found, ok := UnknownFork(&config)
		if ok != refused || ok && (found.Name+"Time" != kind.Field(i).Name || found.Time.Unix() != when) {
			t.Errorf("%s: blocks are refused: %t, the fork found is %+v, %t", kind.Field(i).Name, refused, found, ok)
		}
		if ok {
			unknown++
		}
	}
	if forks < 10 || unknown == 0 {
		t.Errorf("%d forks, %d of them unknown", forks, unknown)
	}
}

// TestFirstUnknownFork: of several the first is named.
func TestFirstUnknownFork(t *testing.T) {
	config := *params.AllDevChainProtocolChanges
	early, late := uint64(100), uint64(200)
	config.BogotaTime, config.UBTTime = &late, &early
	if found, ok := UnknownFork(&config); !ok || found.Name != "UBT" || found.Time.Unix() != 100 {
		t.Errorf("found %+v, %t", found, ok)
	}
}

// TestDevelopmentFork: blocks of Bogota are executed on the chain of geth --dev, and on no other.
func TestDevelopmentFork(t *testing.T) {
	later := uint64(1)
	for name, c := range map[string]struct {
		change func(*params.ChainConfig)
		known  bool
	}{
		"as geth makes it":     {func(*params.ChainConfig) {}, true},
		"with Amsterdam":       {func(c *params.ChainConfig) { c.AmsterdamTime = new(uint64) }, false},
		"with Amsterdam to be": {func(c *params.ChainConfig) { at := uint64(1e10); c.AmsterdamTime = &at }, false},
		"Bogota comes later":   {func(c *params.ChainConfig) { c.BogotaTime = &later }, false},
		"with UBT":             {func(c *params.ChainConfig) { c.UBTTime = new(uint64) }, false},
	} {
		config := *params.AllDevChainProtocolChanges
		c.change(&config)
		rules := config.Rules(big.NewInt(1), true, 100)
		if !rules.IsBogota {
			t.Fatalf("%s: the rules are not those of Bogota", name)
		}
		found, unknown := UnknownFork(&config)
		if refused := unknownRules(&config, rules); refused == c.known || unknown == c.known {
			t.Errorf("%s: blocks are refused: %t, the unknown fork is %+v, %t", name, refused, found, unknown)
		}
	}
}

// TestSimulationInAnUnknownFork simulates a block after a fork that is not known, and one before it.
func TestSimulationInAnUnknownFork(t *testing.T) {
	w := newWorld()
	for _, address := range []common.Address{params.WithdrawalQueueAddress, params.ConsolidationQueueAddress} {
		w.put(address, 0, []byte{byte(vm.STOP)})
	}
	parent := w.at().Header
	fork, config := parent.Time+100, osakaConfig()
	config.BogotaTime = &fork
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint64]error{fork - 1: nil, fork: ErrUnknownFork} {
		blocks := []BlockCalls{{Block: BlockOverrides{Time: &at}}}
		err := e.SimulateBlocks(t.Context(), Parent{Header: parent, State: w}, blocks, SimulationOptions{}, func(*SimulatedBlock) error { return nil })
		if !errors.Is(err, want) {
			t.Errorf("at %d: %v, expected %v", at, err, want)
		}
	}
}
