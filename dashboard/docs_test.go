package dashboard

import (
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// The documentation lists, finds and describes every method without an account.
func TestDocs(t *testing.T) {
	s := serve(t, account.RegistrationClosed)
	b := s.browser()
	b.get("/docs").says(t, 200, "eth_blockNumber", "eth_getBlockByNumber", "starknet_blockNumber", "EVM networks", "Starknet networks", `data-label="Credits">20<`, "/mainnet/v3/YOUR-KEY")
	found := b.get("/docs?q=BLOCK+by%20number")
	found.says(t, 200, "eth_getBlockByNumber", "1 found", `value="BLOCK by number"`)
	if strings.Contains(found.body, "starknet_blockNumber") {
		t.Error("the search finds everything")
	}
	b.get("/docs?q=%3Cscript%3E").says(t, 200, "0 found", "&lt;script&gt;")
	b.get("/docs/methods/eth_getBlockByNumber").says(t, 200, "Returns what eth_getBlockByNumber returns.", "Param 1", "any value", "&#34;0x12d687&#34;", "Outcome", "curl http://")
	b.get("/docs/methods/eth_nothing").says(t, 404)
	b.get("/docs/requests").says(t, 200, "/mainnet/v3/YOUR-KEY", "/openrpc/mainnet.json", "&#34;method&#34;: &#34;eth_blockNumber&#34;")
	p := b.get("/docs/errors")
	for _, e := range jsonrpc.Explanations() {
		p.says(t, 200, `id="`+e.Name+`"`)
	}
	limits := b.get("/docs/limits")
	limits.says(t, 200, "Credits per day", "3,000", "eth_blockNumber")
	for _, private := range []string{"only for operators", "12 running"} {
		if strings.Contains(limits.body, private) {
			t.Errorf("visitors see %q", private)
		}
	}
}

func TestTypeNames(t *testing.T) {
	address := schema.Text("Address", "An address.", "0x")
	tags := schema.Enum("latest", "safe")
	for want, s := range map[string]*schema.Schema{
		"Address":                      address,
		`"latest", "safe"`:             tags,
		`Address, boolean or null`:     schema.AnyOf(schema.Null, address, schema.Boolean, address),
		"array of Address":             schema.Array(address),
		"number":                       schema.Unsigned,
		"object of Address":            schema.Map(address),
		"any value":                    schema.Any,
		"object":                       schema.Object(nil, schema.Members{"a": address}),
		"array of Address or null":     schema.OrNull(schema.Array(address)),
		`array of "latest", "safe"`:    schema.Array(tags),
		"array of object of any value": schema.Array(schema.Map(schema.Any)),
	} {
		if got := site.TypeName(s); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	inner := schema.Object(schema.Members{"z": address}, schema.Members{"a": schema.Boolean})
	outer := schema.Object(nil, schema.Members{"list": schema.Array(inner), "choice": schema.AnyOf(inner, schema.Null)})
	var lines []string
	for _, l := range site.TypeLines("value", "", true, outer) {
		lines = append(lines, strings.Repeat(" ", l.Depth)+l.Name)
	}
	if got := strings.Join(lines, "|"); got != "value| choice|  z|  a| list|  z|  a" {
		t.Errorf("members %s", got)
	}
}
