package verified

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"ashlar/internal/node"
)

// chain is what an honest node says about its chain, to make questions from.
type chain struct {
	blocks       []string // hashes by number
	transactions []string // hashes
	accounts     []string
}

func readChain(t *testing.T, c *node.Client) *chain {
	t.Helper()
	found, seen := new(chain), make(map[string]bool)
	for number := range headOf(t, c) + 1 {
		var block struct {
			Hash         string
			Miner        string
			Transactions []struct{ Hash, From, To string }
		}
		if err := c.Call(t.Context(), &block, "eth_getBlockByNumber", quantity(number), true); err != nil {
			t.Fatal(err)
		}
		found.blocks = append(found.blocks, block.Hash)
		accounts := []string{block.Miner}
		for _, tx := range block.Transactions {
			found.transactions = append(found.transactions, tx.Hash)
			accounts = append(accounts, tx.From, tx.To)
		}
		for _, a := range accounts {
			if a != "" && !seen[a] {
				seen[a] = true
				found.accounts = append(found.accounts, a)
			}
		}
	}
	return found
}

func quantity(n uint64) string { return fmt.Sprintf("%#x", n) }

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

var (
	numberText  = regexp.MustCompile(`"0x[0-9a-f]{1,4}"`)
	hashText    = regexp.MustCompile(`0x[0-9a-f]{64}`)
	addressText = regexp.MustCompile(`"0x[0-9a-fA-F]{40}"`)
)

// ofAnotherBlock returns params with another block number or hash.
func (c *chain) ofAnotherBlock(r *rand.Rand, params json.RawMessage) json.RawMessage {
	other := r.IntN(len(c.blocks))
	text := string(params)
	for _, block := range hashText.FindAllString(text, -1) {
		for _, known := range c.blocks {
			if block == known {
				return json.RawMessage(strings.ReplaceAll(text, block, c.blocks[other]))
			}
		}
	}
	return json.RawMessage(numberText.ReplaceAllString(text, `"`+quantity(uint64(other))+`"`))
}

// ofAnotherAccount returns params with another address.
func (c *chain) ofAnotherAccount(r *rand.Rand, params json.RawMessage) json.RawMessage {
	return json.RawMessage(addressText.ReplaceAllString(string(params), `"`+pick(r, c.accounts)+`"`))
}

// simulation returns a simulation of two blocks that call, set and delete slots, and move ether. Their
// hashes show the state roots.
func (c *chain) simulation(r *rand.Rand, message map[string]any) map[string]any {
	changed := map[string]any{}
	for slot := range 3 {
		changed[fmt.Sprintf("0x%064x", slot)] = fmt.Sprintf("0x%064x", r.IntN(2))
	}
	payment := map[string]any{"from": pick(r, c.accounts), "to": pick(r, c.accounts), "value": "0x1"}
	return map[string]any{"blockStateCalls": []any{
		map[string]any{"calls": []any{message, payment}, "stateOverrides": map[string]any{
			pick(r, c.accounts):      map[string]any{"stateDiff": changed},
			payment["from"].(string): map[string]any{"balance": "0xff"},
		}},
		map[string]any{"calls": []any{message}},
	}, "traceTransfers": r.IntN(2) == 0}
}

// question returns a random request about a block, a transaction, logs, an account, a call or a
// simulation.
func (c *chain) question(r *rand.Rand) []byte {
	number := r.IntN(len(c.blocks))
	block := pick(r, []string{quantity(uint64(number)), c.blocks[number]})
	if r.IntN(8) == 0 {
		block = "latest"
	}
	account, contract := pick(r, c.accounts), pick(r, c.accounts)
	slots := []string{fmt.Sprintf("0x%064x", r.IntN(3))}
	message := map[string]any{"from": account, "to": contract, "input": pick(r, []string{"0x", fmt.Sprintf("0x%064x", r.IntN(4))})}
	filter := map[string]any{"fromBlock": quantity(uint64(r.IntN(number + 1))), "toBlock": quantity(uint64(number))}
	switch r.IntN(3) {
	case 0:
		filter["address"] = contract
	case 1:
		filter = map[string]any{"blockHash": c.blocks[number]}
	}
	unknown := fmt.Sprintf("0x%064x", r.Uint64())
	transaction := pick(r, c.transactions)
	questions := []struct {
		method string
		params []any
	}{
		{"eth_getBlockByNumber", []any{quantity(uint64(number)), r.IntN(2) == 0}},
		{"eth_getBlockByHash", []any{c.blocks[number], r.IntN(2) == 0}},
		{"eth_getBlockByHash", []any{unknown, true}},
		{"eth_getBlockReceipts", []any{block}},
		{"eth_getBlockTransactionCountByNumber", []any{quantity(uint64(number))}},
		{"eth_getLogs", []any{filter}}, {"eth_getLogs", []any{filter}}, {"eth_getLogs", []any{filter}},
		{"eth_getTransactionByHash", []any{transaction}},
		{"eth_getTransactionReceipt", []any{transaction}}, {"eth_getTransactionReceipt", []any{transaction}},
		{"eth_getTransactionReceipt", []any{unknown}},
		{"eth_getTransactionByBlockNumberAndIndex", []any{quantity(uint64(number)), quantity(uint64(r.IntN(3)))}},
		{"eth_getBalance", []any{account, block}}, {"eth_getTransactionCount", []any{account, block}},
		{"eth_getCode", []any{contract, block}}, {"eth_getStorageAt", []any{contract, slots[0], block}},
		{"eth_getProof", []any{contract, slots, block}},
		{"eth_call", []any{message, block}}, {"eth_estimateGas", []any{message, block}}, {"eth_createAccessList", []any{message, block}},
		{"debug_traceTransaction", []any{transaction, map[string]any{"tracer": "callTracer"}}},
		{"eth_feeHistory", []any{"0x3", quantity(uint64(number)), []any{50}}},
		{"eth_simulateV1", []any{c.simulation(r, message), block}}, {"eth_simulateV1", []any{c.simulation(r, message), block}},
	}
	q := pick(r, questions)
	request, _ := node.Request(1, q.method, q.params...)
	return request
}
