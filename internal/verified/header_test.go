package verified

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ashlar/internal/node"
)

// expectVerification checks that a proven network says what of its answers is proven.
func expectVerification(t *testing.T, c *node.Client) {
	t.Helper()
	const (
		account  = `"0x7dcd17433742f4c0ca53122ab541d0ba67fc27df"`
		reverts  = `[{"input":"0x60006000fd"},"latest"]` // creation code: PUSH1 0 PUSH1 0 REVERT
		unproven = "none"
		proven   = "proven"
	)
	unknown := fmt.Sprintf(`"0x%064x"`, 1)
	call := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params)
	}
	for _, e := range []struct{ body, want string }{
		{call("eth_getBlockByNumber", `["0x1",false]`), proven},
		{call("eth_getBlockByNumber", `["latest",true]`), proven},
		{call("eth_getBlockByNumber", `["0xffffff",false]`), unproven},
		{call("eth_getBlockByHash", `[`+unknown+`,false]`), unproven},
		{call("eth_getTransactionReceipt", `[`+unknown+`]`), unproven},
		{call("eth_getBlockReceipts", `["0x2"]`), proven},
		{call("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x5"}]`), proven},
		{call("eth_getBalance", `[`+account+`,"0x5"]`), proven},
		{call("eth_getBalance", `[`+account+`,"0xffffff"]`), unproven},
		{call("eth_call", `[{"to":`+account+`},"latest"]`), proven},
		{call("eth_call", reverts), proven},
		{call("eth_feeHistory", `["0x2","0x5",[]]`), proven},
		{call("eth_blockNumber", `[]`), unproven},
		{call("eth_gasPrice", `[]`), unproven},
		{call("eth_maxPriorityFeePerGas", `[]`), unproven},
		{call("eth_newFilter", `[{}]`), unproven},
		{call("eth_sendRawTransaction", `["0x00"]`), unproven},
		{"[" + call("eth_getBalance", `[`+account+`,"0x5"]`) + "," + call("eth_getCode", `[`+account+`,"0x5"]`) + "]", proven},
		{"[" + call("eth_getBalance", `[`+account+`,"0x5"]`) + "," + call("eth_blockNumber", `[]`) + "]", unproven},
	} {
		response, err := http.Post(c.URL, "application/json", strings.NewReader(e.body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Ashlar-Verified"); got != e.want {
			t.Errorf("%s: verified %q, want %s", e.body, got, e.want)
		}
	}
}
