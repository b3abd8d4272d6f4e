package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"ashlar/history/paging"
	"ashlar/starknet"
	"ashlar/starknet/source/synthetic"
)

// TestWhatIsAsked: every form in which real clients send the same question, and
// what is said of questions that cannot be answered.
func TestWhatIsAsked(t *testing.T) {
	chain := made(1, 100)
	blocks := next(chain, 20)
	n := newNetwork(t, blocks...)
	hash := blocks[3].Hash.String()
	many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	for _, test := range []struct {
		name, params string
		code         int // 0 for an answer
		says         string
	}{
		{"by name", `{"filter":{"chunk_size":10}}`, 0, ""},
		{"by position", `[{"chunk_size":10}]`, 0, ""},
		{"nulls", `{"filter":{"from_block":null,"to_block":null,"address":null,"keys":null,"continuation_token":null,"chunk_size":10}}`, 0, ""},
		{"null after a size", `{"filter":{"chunk_size":10,"chunk_size":null}}`, -32602, "chunk_size: missing"},
		{"null after a block", `{"filter":{"from_block":{"block_number":99},"from_block":null,"chunk_size":10}}`, 0, ""},
		{"null after a hash", `{"filter":{"from_block":{"block_hash":"0x123","block_hash":null,"block_number":101},"chunk_size":10}}`, 0, ""},
		{"null after a token", `{"filter":{"continuation_token":"","continuation_token":null,"chunk_size":10}}`, 0, ""},
		{"a block of more than 64 bits", `{"filter":{"to_block":{"block_number":18446744073709551616},"chunk_size":10}}`, 0, ""},
		{"an empty token", `{"filter":{"continuation_token":"","chunk_size":10}}`, 0, ""},
		{"unknown members", `{"filter":{"chunk_size":10,"order":"asc"},"more":1}`, 0, ""},
		{"a block by its hash", `{"filter":{"from_block":{"block_hash":"` + hash + `"},"chunk_size":10}}`, 0, ""},
		{"a hash with upper-case digits", `{"filter":{"from_block":{"block_hash":"0x0` + strings.ToUpper(hash[2:]) + `"},"chunk_size":10}}`, 0, ""},
		{"both ways of naming, one null", `{"filter":{"from_block":{"block_hash":null,"block_number":101},"chunk_size":10}}`, 0, ""},
		{"tags", `{"filter":{"from_block":"latest","to_block":"pending","chunk_size":10}}`, 0, ""},
		{"the newer tag", `{"filter":{"from_block":"latest","to_block":"pre_confirmed","chunk_size":10}}`, 0, ""},
		{"no keys", `{"filter":{"keys":[],"chunk_size":10}}`, 0, ""},
		{"any keys", `{"filter":{"keys":[[],null,[]],"chunk_size":10}}`, 0, ""},
		{"keys in one list", `{"filter":{"keys":["0x1","0x02"],"chunk_size":10}}`, 0, ""},
		{"as many as there may be", `{"filter":{"keys":[` + many(15, `["0x1"]`) + `,[` + many(1009, `"0x2"`) + `]],"chunk_size":1024}}`, 0, ""},

		{"no params", ``, -32602, "filter"},
		{"an empty array", `[]`, -32602, "filter"},
		{"two positions", `[{"chunk_size":10},{}]`, -32602, "filter"},
		{"no filter", `{"chunk_size":10}`, -32602, "filter"},
		{"a filter that is no object", `{"filter":[]}`, -32602, "filter"},
		{"no page size", `{"filter":{}}`, -32602, "chunk_size: missing"},
		{"a page of none", `{"filter":{"chunk_size":0}}`, -32602, "chunk_size: expected at least 1"},
		{"a negative page", `{"filter":{"chunk_size":-1}}`, -32602, "chunk_size"},
		{"a page size in hex", `{"filter":{"chunk_size":"0xa"}}`, -32602, "chunk_size"},
		{"a page size with a fraction", `{"filter":{"chunk_size":1.5}}`, -32602, "chunk_size"},
		{"too large a page", `{"filter":{"chunk_size":1025}}`, 31, "Requested page size is too big"},
		{"a page of more than 64 bits", `{"filter":{"chunk_size":99999999999999999999}}`, 31, "Requested page size is too big"},
		{"an unknown hash", `{"filter":{"from_block":{"block_hash":"0x123"},"chunk_size":10}}`, 24, "Block not found"},
		{"a block before the first", `{"filter":{"from_block":{"block_number":99},"chunk_size":10}}`, 24, "Block not found"},
		{"an unknown tag", `{"filter":{"from_block":"earliest","chunk_size":10}}`, -32602, "from_block: expected"},
		{"a number as a block", `{"filter":{"to_block":5,"chunk_size":10}}`, -32602, "to_block: expected"},
		{"a block that is not named", `{"filter":{"to_block":{},"chunk_size":10}}`, -32602, "to_block: expected"},
		{"a block that is named twice", `{"filter":{"to_block":{"block_number":1,"block_hash":"0x1"},"chunk_size":10}}`, -32602, "either"},
		{"a block number in hex", `{"filter":{"to_block":{"block_number":"0x5"},"chunk_size":10}}`, -32602, "to_block: block_number"},
		{"a malformed hash", `{"filter":{"to_block":{"block_hash":"0xzz"},"chunk_size":10}}`, -32602, "character 3"},
		{"a malformed address", `{"filter":{"address":"0x12g","chunk_size":10}}`, -32602, "address: felt"},
		{"an address above the field", `{"filter":{"address":"0x` + strings.Repeat("f", 64) + `","chunk_size":10}}`, -32602, "prime"},
		{"keys that are no array", `{"filter":{"keys":"0x1","chunk_size":10}}`, -32602, "keys: expected an array"},
		{"keys of both forms", `{"filter":{"keys":["0x1",["0x2"]],"chunk_size":10}}`, -32602, "keys:"},
		{"a malformed key", `{"filter":{"keys":[[],["0x1","1"]],"chunk_size":10}}`, -32602, "keys: element 1"},
		{"too many positions", `{"filter":{"keys":[` + many(17, `[]`) + `],"chunk_size":10}}`, 34, "Too many keys"},
		{"too many keys", `{"filter":{"keys":[[` + many(1025, `"0x2"`) + `]],"chunk_size":10}}`, 34, "Too many keys"},
		{"a token of another kind", `{"filter":{"continuation_token":"8438-0","chunk_size":10}}`, 33, "token"},
		{"a token that is no text", `{"filter":{"continuation_token":5,"chunk_size":10}}`, -32602, "continuation_token"},
	} {
		out, err := n.ask(t, "starknet_getEvents", test.params)
		switch {
		case code(err) != test.code:
			t.Errorf("%s: %s, %v, want code %d", test.name, out, err, test.code)
		case err != nil && !strings.Contains(err.Error(), test.says):
			t.Errorf("%s: the error lacks %q: %v", test.name, test.says, err)
		}
	}
}

func TestNoBlocks(t *testing.T) {
	n := newNetwork(t)
	for method, params := range map[string]string{
		"rollup_getEvents": `{"filter":{"chunk_size":1}}`, "starknet_blockNumber": `[]`, "starknet_blockHashAndNumber": ``,
		"starknet_getBlockWithTxHashes": `["latest"]`, "starknet_getTransactionReceipt": `["0x1"]`,
	} {
		if _, err := n.ask(t, method, params); code(err) != 32 {
			t.Errorf("%s: %v, want code 32", method, err)
		}
	}
}

// TestTokensOfOthers: a token is good for the filter that it was made for, from the
// block on that the filter names.
func TestTokensOfOthers(t *testing.T) {
	chain := made(2, 0)
	n := newNetwork(t, next(chain, 30)...)
	filter := `"from_block":{"block_number":2},"to_block":{"block_number":28},"keys":[["0x1","` + synthetic.Selector(0).String() + `"]]`
	p, err := n.pageOf(t, filter, 2, "")
	if err != nil || p.Token == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, same := range []string{
		filter,
		strings.Replace(filter, `"0x1","`+synthetic.Selector(0).String()+`"`, `"`+synthetic.Selector(0).String()+`","0x01","0x1"`, 1),
		strings.Replace(filter, `]]`, `],[],[]]`, 1),
	} {
		if _, err := n.pageOf(t, same, 5, *p.Token); err != nil {
			t.Errorf("%s: %v", same, err)
		}
	}
	for _, other := range []string{
		``,
		strings.Replace(filter, `"block_number":2}`, `"block_number":1}`, 1),
		strings.Replace(filter, `"block_number":2}`, `"block_number":27}`, 1),
		strings.Replace(filter, `"block_number":28}`, `"block_number":27}`, 1),
		strings.Replace(filter, `{"block_number":28}`, `"latest"`, 1),
		strings.Replace(filter, `"0x1"`, `"0x2"`, 1),
		filter + `,"address":"0x1"`,
	} {
		if _, err := n.pageOf(t, other, 5, *p.Token); code(err) != 33 {
			t.Errorf("%s: %v, want code 33", other, err)
		}
	}
}

// TestTokensThatNoPageCameWith: a token goes on only where a page can have ended, to
// where its range can have ended.
func TestTokensThatNoPageCameWith(t *testing.T) {
	blocks := next(made(2, 0), 30)
	n := newNetwork(t, blocks...)
	byNumber := `"from_block":{"block_number":2},"to_block":{"block_number":28}`
	byHash := `"from_block":{"block_number":2},"to_block":{"block_hash":"` + blocks[28].Hash.String() + `"}`
	for _, test := range []struct {
		name, filter string
		change       func(*paging.Token)
		want         int
	}{
		{"the same", byNumber, func(*paging.Token) {}, 0},
		{"the same, to a hash", byHash, func(*paging.Token) {}, 0},
		{"behind the block's last event", byNumber, func(t *paging.Token) { t.Next.Position = 10_000 }, 33},
		{"the greatest position", byNumber, func(t *paging.Token) { t.Next.Position = math.MaxUint64 }, 33},
		{"behind the last event of all", byNumber, func(t *paging.Token) {
			t.Next, t.BlockHash = paging.Place{Block: 28, Position: 10_000}, [32]byte(blocks[28].Hash)
		}, 33},
		{"another block's hash", byNumber, func(t *paging.Token) { t.Next.Block++ }, 33},
		{"to a block behind the range", byNumber, func(t *paging.Token) { t.To = 29 }, 33},
		{"to a block behind the hash", byHash, func(t *paging.Token) { t.To = 29 }, 33},
		{"to a block before the hash", byHash, func(t *paging.Token) { t.To = 27 }, 33},
	} {
		p, err := n.pageOf(t, test.filter, 2, "")
		if err != nil || p.Token == nil {
			t.Fatalf("%+v, %v", p, err)
		}
		token, err := paging.ParseToken([]byte(*p.Token))
		if err != nil {
			t.Fatal(err)
		}
		test.change(&token)
		if p, err := n.pageOf(t, test.filter, 2, token.String()); code(err) != test.want {
			t.Errorf("%s: %+v, %v, want code %d", test.name, p, err, test.want)
		}
	}
}

// TestTokenBeforeTheFirstBlock: a token of a server that has more blocks names one that is not here.
func TestTokenBeforeTheFirstBlock(t *testing.T) {
	blocks := next(made(2, 5), 30)
	n := newNetwork(t, blocks[1:]...)
	const filter = `"from_block":"latest"`
	p, err := newNetwork(t, blocks...).pageOf(t, filter, 1, "")
	if err != nil || p.Token == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	token, err := paging.ParseToken([]byte(*p.Token))
	if err != nil {
		t.Fatal(err)
	}
	token.Next.Block = 5
	if _, err := n.pageOf(t, filter, 1, token.String()); code(err) != 24 {
		t.Errorf("%v, want code 24", err)
	}
}

// TestRangesWithoutBlocks: what ends before it begins, and what is pending, is empty.
func TestRangesWithoutBlocks(t *testing.T) {
	n := newNetwork(t, next(made(2, 0), 30)...)
	for _, filter := range []string{
		`"from_block":{"block_number":9},"to_block":{"block_number":8}`,
		`"from_block":{"block_number":30}`,
		`"from_block":"pending","to_block":"pending"`,
	} {
		if p, err := n.pageOf(t, filter, 5, ""); err != nil || len(p.Events) > 0 || p.Token != nil {
			t.Errorf("%s: %+v, %v, want an empty page", filter, p, err)
		}
	}
}

// TestOtherMethods: the answers that clients ask for when they connect, and about
// blocks and receipts.
func TestOtherMethods(t *testing.T) {
	blocks := next(made(2, 7), 60)
	n := newNetwork(t, blocks...)
	last := blocks[len(blocks)-1]
	for method, want := range map[string]string{
		"starknet_specVersion":        `"0.9.0"`,
		"starknet_chainId":            `"0x534e5f4d41494e"`,
		"starknet_blockNumber":        `66`,
		"starknet_blockHashAndNumber": fmt.Sprintf(`{"block_hash":%q,"block_number":66}`, last.Hash),
	} {
		for _, params := range []string{``, `[]`, `{}`} {
			if out, err := n.ask(t, method, params); err != nil || string(out) != want {
				t.Errorf("%s(%s): %s, %v, want %s", method, params, out, err, want)
			}
		}
		for _, params := range []string{`[1]`, `{"block_id":"latest"}`} {
			if _, err := n.ask(t, method, params); code(err) != -32602 {
				t.Errorf("%s(%s): %v, want code -32602", method, params, err)
			}
		}
	}
	for _, block := range blocks {
		checkBlock(t, n, block)
		for i := range block.Transactions {
			checkReceipt(t, n, block, &block.Transactions[i])
		}
	}
	for params, want := range map[string]int{
		`["pending"]`: 0, `{"block_id":"latest"}`: 0, `[{"block_number":6}]`: 24, `[{"block_number":67}]`: 24, `[{"block_hash":"0x5"}]`: 24, `["earliest"]`: -32602, `[]`: -32602, `{}`: -32602,
		`["latest","latest"]`: -32602, `{"block":"latest"}`: -32602, `{"block_id":"latest","more":1}`: 0, `{"block_id":"latest","block_id":"earliest"}`: -32602,
	} {
		if _, err := n.ask(t, "starknet_getBlockWithTxHashes", params); code(err) != want {
			t.Errorf("block %s: %v, want code %d", params, err, want)
		}
	}
	for params, want := range map[string]int{`["0x5"]`: 29, `{"transaction_hash":"0x5"}`: 29, `["5"]`: -32602, `[5]`: -32602, `["0x5","0x5"]`: -32602, `{"hash":"0x5"}`: -32602} {
		if _, err := n.ask(t, "starknet_getTransactionReceipt", params); code(err) != want {
			t.Errorf("receipt %s: %v, want code %d", params, err, want)
		}
	}
}

func checkBlock(t *testing.T, n *network, block *starknet.Block) {
	t.Helper()
	hashes := make([]string, 0)
	for i := range block.Transactions {
		hashes = append(hashes, fmt.Sprintf("%q", block.Transactions[i].Hash))
	}
	want := fmt.Sprintf(`{"status":"ACCEPTED_ON_L2","block_hash":%q,"parent_hash":%q,"block_number":%d,"new_root":%q,"timestamp":%d,"sequencer_address":%q,`+
		`"l1_gas_price":{"price_in_fri":"0x246139ca8003","price_in_wei":"0x3b9aca07"},"l1_data_gas_price":{"price_in_fri":"0x9c41","price_in_wei":"0x1"},`+
		`"l2_gas_price":{"price_in_fri":"0xee6b2800","price_in_wei":"0x186a0"},"l1_da_mode":"BLOB","starknet_version":"0.13.2","transactions":[%s]}`,
		block.Hash, block.Parent, block.Number, block.NewRoot, block.Timestamp, block.Sequencer, strings.Join(hashes, ","))
	for _, params := range []string{fmt.Sprintf(`[{"block_number":%d}]`, block.Number), fmt.Sprintf(`{"block_id":{"block_hash":%q}}`, block.Hash)} {
		if out, err := n.ask(t, "starknet_getBlockWithTxHashes", params); err != nil || string(out) != want {
			t.Errorf("block %s: %s, %v, want %s", params, out, err, want)
		}
	}
}

func checkReceipt(t *testing.T, n *network, block *starknet.Block, transaction *starknet.Transaction) {
	t.Helper()
	out, err := n.ask(t, "starknet_getTransactionReceipt", fmt.Sprintf(`[%q]`, transaction.Hash))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Type   string
		Fee    struct{ Amount, Unit string } `json:"actual_fee"`
		Events []struct {
			From string `json:"from_address"`
			Keys []string
			Data []string
		}
		Messages []struct {
			From    string `json:"from_address"`
			To      string `json:"to_address"`
			Payload []string
		} `json:"messages_sent"`
		ExecutionStatus string `json:"execution_status"`
		RevertReason    string `json:"revert_reason"`
		BlockHash       string `json:"block_hash"`
		MessageHash     string `json:"message_hash"`
		ContractAddress string `json:"contract_address"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	receipt := &transaction.Receipt
	unit := map[bool]string{true: "FRI", false: "WEI"}[transaction.Version >= 3]
	status := map[bool]string{true: "REVERTED", false: "SUCCEEDED"}[receipt.Reverted]
	if got.Type != transaction.Kind.String() || got.BlockHash != block.Hash.String() || got.Fee.Amount != receipt.ActualFee.String() ||
		got.Fee.Unit != unit || got.ExecutionStatus != status || got.RevertReason != receipt.RevertReason ||
		len(got.Events) != len(receipt.Events) || len(got.Messages) != len(receipt.Messages) {
		t.Errorf("receipt %s, want that of %+v", out, transaction)
	}
	if (got.MessageHash != "") != (transaction.Kind == starknet.L1Handler) || (got.ContractAddress != "") != (transaction.Kind == starknet.DeployAccount) {
		t.Errorf("receipt %s of kind %s", out, transaction.Kind)
	}
	for i, event := range receipt.Events {
		if e := got.Events[i]; e.From != event.From.String() || strings.Join(e.Keys, " ") != strings.Join(texts(event.Keys), " ") || strings.Join(e.Data, " ") != strings.Join(texts(event.Data), " ") {
			t.Errorf("receipt %s: event %d is %+v, want %+v", transaction.Hash, i, e, event)
		}
	}
	for i, message := range receipt.Messages {
		if m := got.Messages[i]; m.From != message.From.String() || m.To != message.To.String() || strings.Join(m.Payload, " ") != strings.Join(texts(message.Payload), " ") {
			t.Errorf("receipt %s: message %d is %+v, want %+v", transaction.Hash, i, m, message)
		}
	}
}
