package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestOpenRPCDocuments holds the OpenRPC documents of a network of each family to the
// meta-schema of the specification.
func TestOpenRPCDocuments(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	const openRPC, jsonSchema = "https://meta.open-rpc.org", "https://meta.json-schema.tools"
	for id, name := range map[string]string{
		openRPC: "@open-rpc/meta-schema", jsonSchema: "@json-schema-tools/meta-schema", jsonSchema + "/": "@json-schema-tools/meta-schema",
	} {
		if err := c.AddResource(id, metaSchema(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	valid, err := c.Compile(openRPC)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	for _, network := range []string{"demo", "demo-starknet"} {
		document := decode(t, s.document(t, network))
		if err := valid.Validate(document); err != nil {
			t.Errorf("%s: %v", network, err)
		}
		delete(document.(map[string]any)["methods"].([]any)[0].(map[string]any), "params")
		if valid.Validate(document) == nil {
			t.Errorf("%s: a method without params is valid", network)
		}
	}
}

// metaSchema returns the schema that a package of JavaScript exports.
func metaSchema(t *testing.T, name string) any {
	t.Helper()
	const script = "const p = require(process.argv[1]); process.stdout.write(JSON.stringify(p.default || p))"
	text, err := exec.CommandContext(t.Context(), "node", "-e", script, filepath.Join(folder(t), "node_modules", name)).Output()
	if err != nil {
		t.Fatal(err)
	}
	schema := decode(t, text).(map[string]any)
	delete(schema, "$schema") // they are added by their addresses
	delete(schema, "$id")
	return schema
}

// document fetches the OpenRPC document of a network.
func (s *service) document(t *testing.T, network string) []byte {
	t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://" + at.Host + "/openrpc/" + network + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !json.Valid(text) {
		t.Fatalf("%d %v %.200s", response.StatusCode, err, text)
	}
	return text
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
