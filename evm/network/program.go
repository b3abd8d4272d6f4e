package network

import (
	"encoding/json"
	"strconv"

	"ashlar/family"
)

// programs returns programs that call a method with params.
func programs(url, password, method string, params json.RawMessage) []family.Snippet {
	name := strconv.Quote(method)
	provider := `const provider = new JsonRpcProvider("` + url + `");`
	imports := `import { JsonRpcProvider } from "ethers";`
	if password != "" {
		imports = `import { FetchRequest, JsonRpcProvider } from "ethers";`
		provider = family.Lines(
			`const request = new FetchRequest("`+url+`");`,
			family.WithPassword(password, `request.setHeader("Authorization", "%s");`),
			`const provider = new JsonRpcProvider(request);`)
	}
	auth := ""
	if password != "" {
		auth = `, request_kwargs={"auth": ("", "` + password + `")}`
	}
	return []family.Snippet{
		{Tool: "ethers", Text: family.Lines(imports, ``, provider, `console.log(await provider.send(`+name+`, `+string(params)+`));`)},
		{Tool: "viem", Text: family.Lines(
			`import { createPublicClient, http } from "viem";`, ``,
			`const transport = http("`+url+`"`+family.WithPassword(password, `, { fetchOptions: { headers: { Authorization: "%s" } } }`)+`);`,
			`const client = createPublicClient({ transport });`,
			`console.log(await client.request({ method: `+name+`, params: `+string(params)+` }));`)},
		{Tool: "web3.py", Text: family.Lines(
			`from web3 import Web3`, ``,
			`w3 = Web3(Web3.HTTPProvider("`+url+`"`+auth+`))`,
			`print(w3.provider.make_request(`+name+`, `+family.PythonValue(params)+`))`)},
		{Tool: "Go", Text: family.GoProgram(url, password, method, params)},
	}
}
