package command

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
)

// largestInAmsterdam is the largest code that the guide promises for a demo in Amsterdam, in bytes.
const largestInAmsterdam = 10_000

// TestDemoTakesContracts deploys contracts as large as the guide to the demo says, and estimates one
// that is too large for Amsterdam.
func TestDemoTakesContracts(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "demo.md"))
	if err != nil {
		t.Fatal(err)
	}
	const tooLarge = "contract creation code storage out of gas"
	for _, said := range []string{"10,000 bytes", "24,576 bytes", "`" + tooLarge + "`", "ashlar demo --blocks 29"} {
		if !strings.Contains(string(guide), said) {
			t.Errorf("the guide lacks %q", said)
		}
	}
	for _, test := range []struct {
		blocks  uint64
		largest int
		refused string // what the largest contract of Osaka is answered; empty if it is taken
	}{
		{29, params.MaxCodeSize, ""},
		{30, largestInAmsterdam, tooLarge},
	} {
		t.Run(fmt.Sprintf("%d blocks", test.blocks), func(t *testing.T) {
			text := introduce(t, test.blocks)
			client, err := ethclient.DialContext(t.Context(), webSocketURL.FindString(text))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			deploy(t, client, privateKey.FindStringSubmatch(text)[1], test.largest)
			_, err = client.EstimateGas(t.Context(), ethereum.CallMsg{Data: creation(params.MaxCodeSize)})
			if got := fmt.Sprint(err); test.refused != "" && got != test.refused || test.refused == "" && err != nil {
				t.Errorf("a contract of %d bytes: %v, want %q", params.MaxCodeSize, err, test.refused)
			}
		})
	}
}

// introduce runs a demo until the test ends, and returns what it prints first.
func introduce(t *testing.T, blocks uint64) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	text, ended := runDemo(ctx, t, Demo{Listen: "127.0.0.1:0", Blocks: blocks, Interval: 100 * time.Millisecond})
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the demo ended with %v", err)
		}
	})
	return text
}

// creation is the code that creates a contract of a size. As compilers' does, it has the contract's code after it.
func creation(size int) []byte {
	// CODECOPY(0, 11, size); RETURN(0, size)
	code := []byte{0x62, byte(size >> 16), byte(size >> 8), byte(size), 0x80, 0x60, 11, 0x5f, 0x39, 0x5f, 0xf3}
	return append(code, make([]byte, size)...)
}

// deploy creates a contract of a size and waits until it has its code.
func deploy(t *testing.T, client *ethclient.Client, hexKey string, size int) {
	t.Helper()
	key, err := crypto.HexToECDSA(hexKey)
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.ChainID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sender, data := crypto.PubkeyToAddress(key.PublicKey), creation(size)
	gas, err := client.EstimateGas(t.Context(), ethereum.CallMsg{From: sender, Data: data})
	if err != nil {
		t.Fatalf("a contract of %d bytes: %v", size, err)
	}
	nonce, err := client.PendingNonceAt(t.Context(), sender)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := types.SignNewTx(key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei), Gas: gas, Data: data,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SendTransaction(t.Context(), signed); err != nil {
		t.Fatal(err)
	}
	await.Until(t, fmt.Sprintf("a contract of %d bytes", size), func() bool {
		code, err := client.CodeAt(t.Context(), crypto.CreateAddress(sender, nonce), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(code) == size
	})
}
