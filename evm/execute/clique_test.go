package execute

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/clique"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// cliqueConfig is a chain of proof of authority.
func cliqueConfig(epoch uint64) *params.ChainConfig {
	config := *params.AllCliqueProtocolChanges
	config.Clique = &params.CliqueConfig{Period: 1, Epoch: epoch}
	return &config
}

// The seal of a clique block names its author, also where a traced call is moved to the number after its block's.
func TestTracedCallSeesTheAuthorOfClique(t *testing.T) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("signer")))
	if err != nil {
		t.Fatal(err)
	}
	header := &types.Header{
		Number: big.NewInt(1000), Difficulty: big.NewInt(2), GasLimit: 30_000_000, Time: 12_000, BaseFee: big.NewInt(7),
		Extra: make([]byte, 32+crypto.SignatureLength),
	}
	seal, err := crypto.Sign(clique.SealHash(header).Bytes(), key)
	if err != nil {
		t.Fatal(err)
	}
	copy(header.Extra[32:], seal)
	e, err := New(cliqueConfig(30_000))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.put(contract, 0, returning(vm.COINBASE))
	for _, number := range []uint64{1000, 1001, 1002} {
		var got common.Address
		tracer := Tracer{Stop: func(error) {}, Hooks: &tracing.Hooks{OnExit: func(_ int, output []byte, _ uint64, _ error, _ bool) { got = common.BytesToAddress(output) }}}
		options := CallOptions{Block: BlockOverrides{Number: uint256.NewInt(number)}}
		if err := e.TraceCall(t.Context(), At{Header: header, State: w, Hashes: w}, &Message{To: &contract}, options, tracer); err != nil {
			t.Fatal(err)
		}
		if want := crypto.PubkeyToAddress(key.PublicKey); got != want {
			t.Errorf("number %d: the author is %s, want %s", number, got, want)
		}
	}
}
