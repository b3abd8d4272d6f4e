package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	geth "github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
)

func TestBodies(t *testing.T) {
	hash := func(n byte) common.Hash { return common.Hash{n} }
	const (
		first  = `{"transactions":["0x0102","0x03"],"withdrawals":null`
		second = `{"transactions":[],"withdrawals":[{"index":"0x1","validatorIndex":"0x2","address":"0x0300000000000000000000000000000000000000","amount":"0x4"},` +
			`{"index":"0x0","validatorIndex":"0x0","address":"0x0000000000000000000000000000000000000000","amount":"0x0"}]`
		third  = `{"transactions":[],"withdrawals":[]`
		noList = `,"blockAccessList":null}`
	)
	for _, test := range []struct {
		method string
		params []any
		want   string
	}{
		{"ByHashV1", []any{[]common.Hash{hash(2), hash(0), hash(1)}}, `"result":[` + second + `},null,` + first + `}]`},
		{"ByHashV2", []any{[]common.Hash{hash(3), hash(1), hash(0)}}, `"result":[` + third + `,"blockAccessList":"0xc0"},` + first + noList + `,null]`},
		{"ByHashV1", []any{[]common.Hash{}}, `"result":[]`},
		{"ByHashV1", []any{[]string{"0x01"}}, `-32602`},
		{"ByHashV1", nil, `-32602`},
		{"ByHashV2", []any{make([]common.Hash, maxBodies+1)}, `-38004,"message":"Too large request"`},
		{"ByRangeV1", []any{"0x1", "0x2"}, `"result":[` + first + `},` + second + `}]`},
		{"ByRangeV2", []any{"0x2", "0x20"}, `"result":[` + second + noList + `,` + third + `,"blockAccessList":"0xc0"}]`},
		{"ByRangeV1", []any{"0x4", "0x2"}, `"result":[]`},
		{"ByRangeV1", []any{"0xffffffffffffffff", "0x2"}, `"result":[]`},
		{"ByRangeV1", []any{"0x0", "0x2"}, `-32602`},
		{"ByRangeV1", []any{"0x1", "0x0"}, `-32602`},
		{"ByRangeV1", []any{"0x1"}, `-32602`},
		{"ByRangeV2", []any{"0x1", "0x401"}, `-38004`},
	} {
		methods := New(Config{Chain: new(listener), Rules: rules()}).Methods()
		if got := ask(t, methods, "engine_getPayloadBodies"+test.method, test.params...); !strings.Contains(got, test.want) {
			t.Errorf("%s %v: got %s, want %s", test.method, test.params, got, test.want)
		}
	}
	broken := New(Config{Chain: &listener{err: errors.New("disk full")}, Rules: rules()}).Methods()
	for _, params := range [][]any{{"ByHashV2", []common.Hash{hash(1)}}, {"ByRangeV1", "0x1", "0x1"}} {
		if got := ask(t, broken, "engine_getPayloadBodies"+params[0].(string), params[1:]...); !strings.Contains(got, `-32603,"message":"internal error"`) {
			t.Errorf("%v: got %s, want an internal error", params, got)
		}
	}
}

// TestBodiesAreRead reads bodies with the types of go-ethereum.
func TestBodiesAreRead(t *testing.T) {
	answer := ask(t, New(Config{Chain: new(listener), Rules: rules()}).Methods(), "engine_getPayloadBodiesByRangeV2", "0x1", "0x3")
	var got struct {
		Result []*geth.ExecutionPayloadBodyV2
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if len(got.Result) != 3 || len(got.Result[0].TransactionData) != 2 || len(got.Result[1].Withdrawals) != 2 {
		t.Errorf("got %s", answer)
	}
}
