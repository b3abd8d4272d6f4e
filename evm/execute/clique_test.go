package execute

import (
	"context"
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

// linkedHeaders are the ancestors of a block, by number.
type linkedHeaders struct {
	headers []*types.Header
	first   uint64
	reads   int
}

func (l *linkedHeaders) Header(_ context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	l.reads++
	if header := l.headers[number]; header.Hash() == hash {
		return header, nil
	}
	return nil, nil
}

func (l *linkedHeaders) Block(context.Context, common.Hash, uint64) (*types.Block, error) {
	return nil, nil
}

func (l *linkedHeaders) First() uint64 { return l.first }

// Clique walks back to find out who may sign, and asks at each checkpoint whether there are blocks before it.
// That must not take a walk of its own each time. Where the first blocks are not stored, the walk ends with
// the first checkpoint.
func TestCliqueWalksBackOnce(t *testing.T) {
	const blocks, epoch = 400, 4
	for first, end := range map[uint64]uint64{0: 0, 1: 0, 150: 152, 152: 152, 153: 156} {
		l := &linkedHeaders{first: first}
		for number := range int64(blocks) {
			header := &types.Header{Number: big.NewInt(number), Difficulty: big.NewInt(2)}
			if number > 0 {
				header.ParentHash = l.headers[number-1].Hash()
			}
			l.headers = append(l.headers, header)
		}
		parent := l.headers[blocks-1]
		c := &chainReader{ctx: t.Context(), config: cliqueConfig(epoch), parent: Parent{Header: parent, Ancestors: l}, failed: new(readFailure)}
		number, hash := parent.Number.Uint64(), parent.Hash()
		for number > 0 && (number%epoch != 0 || c.GetHeaderByNumber(number-1) != nil) {
			header := c.GetHeader(hash, number)
			number, hash = number-1, header.ParentHash
		}
		if number != end {
			t.Errorf("first block %d: the walk ended at block %d, want %d", first, number, end)
		}
		if at := c.GetHeaderByNumber(number); at == nil || at.Number.Uint64() != number {
			t.Errorf("first block %d: there is no header %d", first, number)
		}
		if most := 3 * blocks; l.reads > most {
			t.Errorf("first block %d: %d headers were read, want at most %d", first, l.reads, most)
		}
	}
}
