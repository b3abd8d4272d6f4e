package api_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
)

// balances is code that looks up the balances of n accounts as a token does, in
// a mapping, and returns their sum.
func balances(n int) []byte {
	p := program.New().Push(0)
	for i := range n {
		p.Push(crypto.Keccak256([]byte{byte(i)})[:20]).Push(0).Op(vm.MSTORE).Push(3).Push(32).Op(vm.MSTORE)
		p.Push(64).Push(0).Op(vm.KECCAK256, vm.SLOAD, vm.ADD)
	}
	return p.Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
}

// BenchmarkCall asks for balances at a late and an early block, request to answer.
// What costs depends on the store: here it is in memory.
func BenchmarkCall(b *testing.B) {
	server := recordedServer(b, vectors.Path(b, "execution-apis"))
	const callenv = "0x9344b07175800259691961298ca11c824e65032d"
	contract := common.HexToAddress("0x17e7eedce4ac02ef114a7ed9fe6e2f33feba1667")
	for _, n := range []int{1, 100} {
		code := hex.EncodeToString(balances(n))
		for _, block := range []string{"latest", "0xa"} {
			request := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"%s"},"%s",{"%[1]s":{"code":"0x%[3]s"}}]}`, contract, block, code)
			b.Run(fmt.Sprintf("balances=%d/block=%s", n, block), func(b *testing.B) { ask(b, server, request) })
		}
	}
	b.Run("callenv", func(b *testing.B) {
		ask(b, server, []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"`+callenv+`"},"latest"]}`))
	})
}

func ask(b *testing.B, server *jsonrpc.Server, request []byte) {
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		if out = server.Answer(b.Context(), request, out[:0]); !bytes.Contains(out, []byte(`"result"`)) {
			b.Fatalf("%s", out)
		}
	}
}
