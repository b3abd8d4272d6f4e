package clients

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"ashlar/evm/source/demo"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// forge runs Foundry's forge in the project of scripts/foundry. What it builds is in a folder of its own.
type forge struct {
	bin    string
	env    []string
	client *node.Client
}

func newForge(t *testing.T, dir, url string) forge {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	built := t.TempDir()
	return forge{
		bin: filepath.Join(modules, "@foundry-rs", "forge-"+runtime.GOOS+"-"+runtime.GOARCH, "bin", "forge"),
		env: append(os.Environ(), "NODE_PATH="+modules, "FOUNDRY_OUT="+filepath.Join(built, "out"),
			"FOUNDRY_CACHE_PATH="+filepath.Join(built, "cache"), "FOUNDRY_BROADCAST="+filepath.Join(built, "broadcast")),
		client: node.NewClient(url),
	}
}

// run runs forge and returns what it prints.
func (f forge) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	command := exec.CommandContext(ctx, f.bin, args...)
	command.Dir, command.Env = filepath.Join("scripts", "foundry"), f.env
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("forge %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// balance returns what an account has of the token after a block.
func (f forge) balance(t *testing.T, token, account common.Address, number int) *big.Int {
	t.Helper()
	call := map[string]any{"to": token, "data": "0x70a08231" + common.Bytes2Hex(common.LeftPadBytes(account[:], 32))}
	var balance common.Hash
	if err := f.client.Call(t.Context(), &balance, "eth_call", call, fmt.Sprintf("%#x", number)); err != nil {
		t.Fatal(err)
	}
	return balance.Big()
}

// transfers returns the token's transfers in a block, and one of a later transaction whose receiver no other one concerns.
func (f forge) transfers(t *testing.T, e demo.Examples, number int) (all []types.Log, one types.Log) {
	t.Helper()
	at := hexutil.Uint64(number)
	filter := map[string]any{"address": e.Token, "topics": []common.Hash{e.TransferTopic}, "fromBlock": at, "toBlock": at}
	if err := f.client.Call(t.Context(), &all, "eth_getLogs", filter); err != nil {
		t.Fatal(err)
	}
	concern := map[common.Hash]int{}
	for _, l := range all {
		concern[l.Topics[1]]++
		concern[l.Topics[2]]++
	}
	for _, l := range all {
		if l.TxIndex > 0 && concern[l.Topics[2]] == 1 {
			return all, l
		}
	}
	t.Fatalf("block %d has no transfer to an account of its own", number)
	return nil, one
}

// Forge's cheatcodes fork the demo at any block and transaction, and forge deploys contracts to it.
func TestForge(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t, "--interval", "250ms")
	f := newForge(t, dir, s.url)
	e := demoExamples(t)
	t.Run("forks", func(t *testing.T) {
		numbers := []int{50, 25, 40} // Amsterdam begins between them
		balances := make([]string, len(numbers))
		for i, number := range numbers {
			balances[i] = f.balance(t, e.Token, e.Holder, number).String()
		}
		all, one := f.transfers(t, e, numbers[0])
		receiver := common.BytesToAddress(one.Topics[2][:])
		f.env = append(f.env,
			"URL="+s.url, "CHAIN="+fmt.Sprint(e.ChainID), "TOKEN="+e.Token.Hex(), "HOLDER="+e.Holder.Hex(),
			"BLOCKS="+strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ","), "[]"), "BALANCES="+strings.Join(balances, ","),
			"BLOCK="+fmt.Sprint(numbers[0]), "TRANSFERS="+fmt.Sprint(len(all)), "TRANSACTION="+one.TxHash.Hex(), "RECEIVER="+receiver.Hex(),
			"BEFORE="+f.balance(t, e.Token, receiver, numbers[0]-1).String(), "AMOUNT="+new(big.Int).SetBytes(one.Data).String(),
			fmt.Sprintf("STORAGE=[%q,%q,%q]", e.Token, e.HolderSlot, hexutil.Uint64(numbers[0])),
		)
		if out := f.run(t, "test"); !strings.Contains(out, "4 passed; 0 failed; 0 skipped") {
			t.Errorf("forge test:\n%s", out)
		}
	})
	send := []string{"--rpc-url", s.url, "--private-key", e.VisitorKey.String(), "--broadcast"}
	t.Run("create", func(t *testing.T) {
		out := f.run(t, append(append([]string{"create", "src/Counter.sol:Counter"}, send...), "--constructor-args", "5")...)
		deployed := regexp.MustCompile(`Deployed to: (0x[0-9a-fA-F]{40})`).FindStringSubmatch(out)
		if deployed == nil {
			t.Fatalf("forge create:\n%s", out)
		}
		f.count(t, common.HexToAddress(deployed[1]), 5)
	})
	// Forge does not know Amsterdam's rules, so its own simulation gives the transactions too little gas.
	t.Run("script", func(t *testing.T) {
		out := f.run(t, append([]string{"script", "script/Count.s.sol", "--skip-simulation"}, send...)...)
		if !strings.Contains(out, "ONCHAIN EXECUTION COMPLETE & SUCCESSFUL") {
			t.Fatalf("forge script:\n%s", out)
		}
		var nonce hexutil.Uint64
		if err := f.client.Call(t.Context(), &nonce, "eth_getTransactionCount", e.Visitor, "latest"); err != nil {
			t.Fatal(err)
		}
		f.count(t, crypto.CreateAddress(e.Visitor, uint64(nonce)-3), 14)
	})
}

// count fails the test unless the counter at an address has a value.
func (f forge) count(t *testing.T, counter common.Address, want uint64) {
	t.Helper()
	var got common.Hash
	if err := f.client.Call(t.Context(), &got, "eth_getStorageAt", counter, "0x0", "latest"); err != nil || got.Big().Uint64() != want {
		t.Errorf("the counter %v has %v, %v, expected %d", counter, got, err, want)
	}
}
