// An OpenID Connect provider for a test: node provider.mjs MODULES CALLBACK
//
// It prints its URL. Everybody signs in with the address as the name, and any password.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, callback] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: "ashlar", client_secret: "the secret of the client", redirect_uris: [callback] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: id, email_verified: !id.startsWith("unverified") }),
    }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
