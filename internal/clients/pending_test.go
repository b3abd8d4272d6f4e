package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/source/demo"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/ethclient"
)

// Every library reads the pending block of a network that serves it for strict clients. Those
// that differences.md names reject the form of the specification, and with the errors that it
// quotes.
func TestLibrariesReadThePendingBlock(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	from := serve(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{}
	for _, form := range []string{"specification", "strict-clients"} {
		urls[form] = follow(t, from, form)
	}
	for _, test := range []struct {
		name    string
		read    func(url string) (number string, err error)
		rejects string // what the library says to the form of the specification; empty if it accepts it
	}{
		{"go-ethereum", goEthereum(t), "missing required field 'logsBloom' for Header"},
		{"ethers", script(t, dir, "node", "--input-type=module", "-e", `
			import { JsonRpcProvider } from "ethers";
			const p = new JsonRpcProvider(process.argv[1]);
			console.log((await p.getBlock("pending")).number);
			process.exit(0)`), "invalid value for value.number"},
		{"ethers 5", script(t, dir, "node", "--input-type=module", "-e", `
			import { ethers } from "ethers5";
			console.log((await new ethers.providers.StaticJsonRpcProvider(process.argv[1]).getBlock("pending")).number);
			process.exit(0)`), "invalid BigNumber value"},
		{"web3.js", script(t, dir, "node", "--input-type=module", "-e", `
			import { Web3 } from "web3";
			console.log(String((await new Web3(process.argv[1]).eth.getBlock("pending")).number))`), ""},
		{"cast", script(t, dir, filepath.Join(dir, "node_modules", ".bin", "cast"), "block", "pending", "--field", "number", "--rpc-url"), "prints nothing"},
		{"viem", script(t, dir, "node", "--input-type=module", "-e", `
			import { createPublicClient, http } from "viem";
			console.log(String((await createPublicClient({ transport: http(process.argv[1]) }).getBlock({ blockTag: "pending" })).number))`), ""},
		{"web3.py", script(t, dir, filepath.Join(dir, "venv", "bin", "python"), "-c", `
import sys
from web3 import Web3
print(Web3(Web3.HTTPProvider(sys.argv[1])).eth.get_block("pending")["number"])`), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			number, err := test.read(urls["strict-clients"])
			if n, ok := new(big.Int).SetString(number, 0); err != nil || !ok || n.Sign() == 0 {
				t.Errorf("strict-clients: number %q, %v", number, err)
			}
			number, err = test.read(urls["specification"])
			switch {
			case test.rejects == "" && err != nil:
				t.Errorf("specification: %v", err)
			case test.rejects != "" && (err == nil || !strings.Contains(err.Error(), test.rejects)):
				t.Errorf("specification: number %q, %v, want the error %q", number, err, test.rejects)
			case test.rejects != "" && !strings.Contains(string(page), test.rejects):
				t.Errorf("differences.md lacks the error %q", test.rejects)
			}
		})
	}
}

// follow serves a network that follows a demo, with a form of the pending block, and returns
// its URL.
func follow(t *testing.T, from service, form string) string {
	t.Helper()
	configuration := demo.Default()
	configuration.AmsterdamBlock = 0 // the demo is too short to enter Amsterdam
	shown, err := demo.New(configuration)
	if err != nil {
		t.Fatal(err)
	}
	first, err := shown.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	genesis, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, config := filepath.Join(dir, "genesis.json"), filepath.Join(dir, "ashlar.yaml")
	text := fmt.Sprintf("networks: {demo: {source: %q, genesis: %q, pending_block: %s}}\n", from.url, file, form)
	for path, text := range map[string][]byte{file: genesis, config: []byte(text)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := node.Ashlar{Bin: from.ashlar.Bin, Data: t.TempDir(), Network: "demo", Config: config}
	process, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return client.URL
}

// goEthereum reads the pending block with go-ethereum's client.
func goEthereum(t *testing.T) func(url string) (string, error) {
	return func(url string) (string, error) {
		client, err := ethclient.DialContext(t.Context(), url)
		if err != nil {
			return "", err
		}
		defer client.Close()
		header, err := client.HeaderByNumber(t.Context(), big.NewInt(-1)) // rpc.PendingBlockNumber
		if err != nil {
			return "", err
		}
		return header.Number.String(), nil
	}
}

// script runs a command with the URL as its last argument. Its error has what the command
// printed.
func script(t *testing.T, dir string, command ...string) func(url string) (string, error) {
	return func(url string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
		defer cancel()
		c := exec.CommandContext(ctx, command[0], append(command[1:], url)...)
		c.Dir = dir
		var failure bytes.Buffer
		c.Stderr = &failure
		out, err := c.Output()
		text := strings.TrimSpace(string(out))
		switch {
		case err != nil:
			err = fmt.Errorf("%w: %s", err, &failure)
		case text == "":
			err = errors.New("it prints nothing")
		}
		return text, err
	}
}
