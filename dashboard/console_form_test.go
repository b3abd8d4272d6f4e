package dashboard

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// The form of a method makes the request, and comes back with its problems.
func TestConsoleForm(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	page := b.get("/console?network=mainnet&method=eth_getBlockByNumber")
	page.says(t, 200, `name="p0" type="text" value="0x12d687"`, "any value", "web3.py", "YOUR-KEY")
	form := url.Values{"network": {"mainnet"}, "method": {"eth_getBlockByNumber"}, "do": {"params"}, "p0": {"0x1"}, "p1": {"true"}}
	b.post("/console", form).says(t, 200, "HTTP 200", "/console?again=0")
	var sent bytes.Buffer
	_ = json.Compact(&sent, s.called[0].Request)
	if got, want := sent.String(), `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",true]}`; got != want {
		t.Errorf("sent %s, expected %s", got, want)
	}
	b.get("/console?again=0").says(t, 200, "&#34;0x1&#34;,\n    true")
	form.Set("p0", `["`)
	b.post("/console", form).says(t, 422, "This is not valid JSON.", "Correct the parameter Param 0.")
	s.answer.Body = []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"daily quota exceeded"}}`)
	form.Set("p0", "")
	form.Set("p1", "")
	b.post("/console", form).says(t, 422, "This field is required.")
	form.Set("p0", "0x2")
	form.Set("p1", "false")
	b.post("/console", form).says(t, 200, "used up its credits of the day", `href="/docs/errors#quota"`)
	if len(s.called) != 2 {
		t.Errorf("%d calls, expected 2", len(s.called))
	}
}

// A session remembers its last requests, but no long ones.
func TestConsoleHistory(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	for i := range 2 * 10 {
		b.post("/console", url.Values{"network": {"mainnet"}, "method": {"eth_blockNumber"}, "request": {strings.Repeat(" ", i) + `{"method":"` + strings.Repeat("m", i+1) + `"}`}}).says(t, 200)
	}
	b.post("/console", url.Values{"network": {"mainnet"}, "method": {"eth_blockNumber"}, "request": {`{"method":"` + strings.Repeat("x", 2<<10) + `"}`}}).says(t, 200)
	page := b.get("/console")
	if n := strings.Count(page.body, "/console?again="); n != 10 {
		t.Errorf("%d requests are remembered, expected %d", n, 10)
	}
	b.get("/console?again=0").says(t, 200, strings.Repeat("m", 2*10))
	b.get("/console?again=99").says(t, 200, "eth_blockNumber")
	other, _ := s.newUser("b@example.org", account.RoleUser)
	if strings.Contains(other.get("/console").body, "again=") {
		t.Error("another session sees the requests")
	}
}

// A value that only another method provides is asked for first.
func TestConsoleCallsFirst(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	made := tried("eth_newFilter")
	polled := tried("eth_getFilterLogs")
	polled.Params = []jsonrpc.Param{{Name: "Filter", Schema: schema.String, Required: true, From: "eth_newFilter"}}
	s.more = []site.Method{made, polled}
	s.answer.Body = []byte(`{"jsonrpc":"2.0","id":1,"result":"0xf1"}`)
	page := b.get("/console?network=mainnet&method=eth_getFilterLogs")
	page.says(t, 200, "the result of eth_newFilter")
	b.post("/console", url.Values{"network": {"mainnet"}, "method": {"eth_getFilterLogs"}, "do": {"params"}, "p0": {"the result of eth_newFilter"}}).
		says(t, 200, "eth_newFilter was called first")
	if len(s.called) != 2 || !strings.Contains(string(s.called[1].Request), `"0xf1"`) {
		t.Errorf("called %+v", s.called)
	}
}
