import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { needTools } from '../harness/tools.ts'
import { readItem, readPage } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/**
 * Programs that upload `Größe.bin` as a form and as raw bytes, list the items, delete the second one, and print the problem code of its
 * second deletion.
 */
const programs: Readonly<Record<string, { readonly needs: readonly string[]; readonly command: string }>> = {
  curl: {
    needs: ['curl', 'jq'],
    command: `
      auth="Authorization: Bearer $TOKEN"
      curl -sS --fail -H "$auth" -F 'file=@Größe.bin' "$URL/api/media" >form.json
      raw=$(curl -sS --fail -H "$auth" -H 'Content-Disposition: attachment; filename="raw.bin"' -T Größe.bin -X POST "$URL/api/media" | jq -r .id)
      test 2 = "$(curl -sS --fail -H "$auth" "$URL/api/media" | jq .total)"
      curl -sS --fail -H "$auth" -X DELETE "$URL/api/media/$raw"
      curl -sS -H "$auth" -X DELETE "$URL/api/media/$raw" | jq -r .code`,
  },
  wget: {
    needs: ['wget', 'jq'],
    command: `
      header="--header=Authorization: Bearer $TOKEN"
      get() { wget -q -O - "$header" "$@"; }
      get --post-file=Größe.bin --header='Content-Type: application/octet-stream' \\
        --header="Content-Disposition: attachment; filename*=UTF-8''Gr%C3%B6%C3%9Fe.bin" "$URL/api/media" >form.json
      raw=$(get --post-file=Größe.bin "$URL/api/media" | jq -r .id)
      test 2 = "$(get "$URL/api/media" | jq .total)"
      get --method=DELETE "$URL/api/media/$raw"
      get --content-on-error --method=DELETE "$URL/api/media/$raw" | jq -r .code`,
  },
  requests: {
    needs: ['/usr/lib/python3/dist-packages/requests'],
    command: `/usr/bin/python3 - <<'end'
import os, requests
base = os.environ["URL"] + "/api/media"
session = requests.Session()
session.headers["Authorization"] = "Bearer " + os.environ["TOKEN"]
with open("Größe.bin", "rb") as file:
    session.post(base, files={"file": file}).raise_for_status()
with open("Größe.bin", "rb") as file:
    response = session.post(base, data=file, headers={"Content-Disposition": 'attachment; filename="raw.bin"'})
response.raise_for_status()
raw = response.json()["id"]
assert session.get(base).json()["total"] == 2
session.delete(f"{base}/{raw}").raise_for_status()
print(session.delete(f"{base}/{raw}").json()["code"])
end`,
  },
  httpx: {
    needs: ['/usr/lib/python3/dist-packages/httpx'],
    command: `/usr/bin/python3 - <<'end'
import os, httpx
base = os.environ["URL"] + "/api/media"
with httpx.Client(headers={"Authorization": "Bearer " + os.environ["TOKEN"]}) as client:
    with open("Größe.bin", "rb") as file:
        client.post(base, files={"file": file}).raise_for_status()
    with open("Größe.bin", "rb") as file:
        # Without a length, in chunks.
        client.post(base, content=iter(lambda: file.read(65536), b"")).raise_for_status()
    newest = client.get(os.environ["URL"] + "/api/items", params={"order": "newest"}).json()["data"][0]["id"]
    assert client.get(base).json()["total"] == 2
    client.delete(f"{base}/{newest}").raise_for_status()
    print(client.delete(f"{base}/{newest}").json()["code"])
end`,
  },
  'PHP curl': {
    needs: ['php', '/usr/share/php/GuzzleHttp/autoload.php'],
    command: `cat >program.php <<'end'
<?php
function send(string $method, string $path, array $options = []): array {
    $curl = curl_init(getenv('URL') . $path);
    curl_setopt_array($curl, $options + [
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HTTPHEADER => ['Authorization: Bearer ' . getenv('TOKEN')],
    ]);
    return json_decode(curl_exec($curl), true) ?? [];
}
send('POST', '/api/media', [CURLOPT_POSTFIELDS => ['file' => new CURLFile('Größe.bin')]]);
$raw = send('POST', '/api/media', [CURLOPT_POSTFIELDS => file_get_contents('Größe.bin')])['id'];
if (send('GET', '/api/media')['total'] !== 2) exit(1);
send('DELETE', "/api/media/$raw");
echo send('DELETE', "/api/media/$raw")['code'];
end
php program.php`,
  },
  Guzzle: {
    needs: ['php', '/usr/share/php/GuzzleHttp/autoload.php'],
    command: `cat >program.php <<'end'
<?php
require '/usr/share/php/GuzzleHttp/autoload.php';
$client = new GuzzleHttp\\Client([
    'base_uri' => getenv('URL'),
    'headers' => ['Authorization' => 'Bearer ' . getenv('TOKEN')],
]);
$read = fn ($response) => json_decode($response->getBody(), true);
$client->post('/api/media', ['multipart' => [['name' => 'file', 'contents' => fopen('Größe.bin', 'r')]]]);
$raw = $read($client->post('/api/media', ['body' => fopen('Größe.bin', 'r')]))['id'];
if ($read($client->get('/api/media'))['total'] !== 2) exit(1);
$client->delete("/api/media/$raw");
try {
    $client->delete("/api/media/$raw");
} catch (GuzzleHttp\\Exception\\ClientException $error) {
    echo $read($error->getResponse())['code'];
}
end
php program.php`,
  },
}

async function runIn(directory: string, command: string, { url, token }: SharedServer) {
  const env = { PATH: process.env['PATH'], HOME: directory, LANG: 'C.UTF-8', URL: url, TOKEN: token }
  return await promisify(execFile)('sh', ['-ec', command], { cwd: directory, env })
}

test.each(Object.entries(programs))(
  'U1, U3, P1 %s uploads, lists, deletes and reads a problem',
  async (_, program) => {
    needTools(...program.needs)
    const mine = await sharedServer()
    await using directory = await temporaryDirectory()
    const bytes = randomBytes(300_000)
    await writeFile(join(directory.path, 'Größe.bin'), bytes)
    const { stdout } = await runIn(directory.path, program.command, mine)
    expect(stdout.trim()).toBe('media-unknown')
    const { data } = await readPage(await mine.request('/api/media'))
    expect(data).toHaveLength(1)
    const id = /\/media\/(\w+)/.exec(data[0] ?? '')?.[1]
    const item = await readItem(await mine.request(`/api/media/${id}`))
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    expect([item.filename, item.sha256]).toEqual(['Größe.bin', sha256])
  },
)

test.each([
  ['wget', 'wget -q --content-disposition -i urls.txt'],
  ['aria2c', 'aria2c -q -i urls.txt'],
  ['rclone', 'xargs -n 1 sh -c \'rclone -q copyurl --auto-filename --header-filename "$1" .\' sh <urls.txt'],
])('B1 %s downloads all URLs of a page under the names of the files', async (program, command) => {
  needTools(program)
  const mine = await sharedServer()
  await using directory = await temporaryDirectory()
  const files = new Map(['one.bin', 'two.bin', 'three.bin'].map((name) => [name, randomBytes(1_500_000)]))
  for (const [name, bytes] of files)
    await mine.request('/api/media', {
      method: 'POST',
      body: bytes,
      headers: { 'content-disposition': `attachment; filename="${name}"` },
    })
  const { data } = await readPage(await mine.request('/api/media'))
  await writeFile(join(directory.path, 'urls.txt'), `${data.join('\n')}\n`)
  await runIn(directory.path, command, server)
  // rclone writes its configuration into its home.
  const found = (await readdir(directory.path)).filter((name) => !name.startsWith('.'))
  expect(found.toSorted()).toEqual([...files.keys(), 'urls.txt'].toSorted())
  for (const [name, bytes] of files)
    expect(Buffer.compare(await readFile(join(directory.path, name)), bytes)).toBe(0)
})

test('B1, B7 the http remote of rclone copies one file, and lists none', async () => {
  needTools('rclone')
  const mine = await sharedServer()
  await using directory = await temporaryDirectory()
  const bytes = randomBytes(300_000)
  const item = await readItem(await mine.request('/api/media', { method: 'POST', body: bytes }))
  const name = item.url.slice(item.url.lastIndexOf('/') + 1)
  await runIn(directory.path, `rclone -q copy --http-url "$URL" ':http:media/${name}' .`, mine)
  expect(Buffer.compare(await readFile(join(directory.path, name)), bytes)).toBe(0)
  const list = (path: string) =>
    runIn(
      directory.path,
      `rclone -q lsf --http-url "$URL" --http-headers "Authorization,Bearer $TOKEN" ':http:${path}'`,
      mine,
    )
  await expect(list('media/')).rejects.toThrow('directory not found')
  await expect(list('api/media/')).rejects.toThrow("can't parse content type")
})

/** What the steps of docs/widgets.md enter into the action of Shortcuts. */
async function readShortcut() {
  const page = await readFile(join(root, 'docs/widgets.md'), 'utf8')
  const section = page.split(/^## /m).find((text) => text.startsWith('iOS Shortcuts\n')) ?? ''
  const value = (pattern: RegExp) => pattern.exec(section)?.[1] ?? `nothing like ${pattern}`
  return {
    path: new URL(value(/\*Get Contents of\* `([^`]+)`/)).pathname,
    scope: value(/with the scope `([^`]+)`/),
    method: value(/\*Method\*: `(\w+)`/),
    header: value(/\*Headers\*: `([\w-]+)` with the text/),
    text: value(/with the text `([^`]+)`/),
    key: value(/\*File\*: key `(\w+)`/),
    result: value(/the \*Value\* for `(\w+)`/),
    reason: value(/value for `(\w+)` is the\s+reason/),
  }
}

describe('U1, U3, P1 the documented steps of iOS Shortcuts', () => {
  // The app needs a device of Apple. These are requests as its URLSession writes them, with both ways to write a boundary.
  const send = async (token: string, type: string, body: Buffer) => {
    const { path, method, header, text } = await readShortcut()
    const head = [
      `${method} ${path} HTTP/1.1`,
      `Host: ${new URL(server.url).host}`,
      `Content-Type: ${type}`,
      'Connection: close',
      'Accept: */*',
      'User-Agent: BackgroundShortcutRunner/3607.0.2 CFNetwork/3826.500.131 Darwin/24.5.0',
      `${header}: ${text.replace('mbkt_…', token)}`,
      'Accept-Language: de-DE,de;q=0.9',
      `Content-Length: ${body.length}`,
      'Accept-Encoding: identity',
    ]
    return responseOf(
      await sendRaw(server.url, Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])),
    )
  }
  const form = (boundary: string, key: string, name: string, type: string, bytes: Buffer) =>
    Buffer.concat([
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${key}"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`,
      ),
      bytes,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ])

  test.each([
    ['IMG_0042.JPG', (boundary: string) => `multipart/form-data; boundary=${boundary}`],
    ['Übersicht 1.jpeg', (boundary: string) => `multipart/form-data; charset=utf-8; boundary="${boundary}"`],
  ])('upload %s, and give its URL', async (name, multipart) => {
    const { scope, key, result } = await readShortcut()
    const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', scope)
    const bytes = await quarters(64, 48).jpeg().toBuffer()
    const boundary = '7E4B1C0D-5A66-4C57-9D0B-0F7B6C1D2E3F'
    const sent = await send(token, multipart(boundary), form(boundary, key, name, 'image/jpeg', bytes))
    const item = await readItem(sent)
    expect([sent.status, item.filename, result]).toEqual([201, name, 'url'])
    const served = await fetch(item.url)
    expect(served.headers.get('content-type')).toBe('image/jpeg')
    expect(Buffer.compare(Buffer.from(await served.arrayBuffer()), bytes)).toBe(0)
  })

  test('upload a request body without its name, and give the reason of a refusal', async () => {
    const { scope, key, reason } = await readShortcut()
    const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', scope)
    const bytes = await quarters(64, 48).jpeg().toBuffer()
    const sent = await send(token, 'image/jpeg', bytes)
    expect([sent.status, (await readItem(sent)).filename]).toEqual([201, null])
    const refused = await send(
      'mbkt_unknown',
      'multipart/form-data; boundary=x',
      form('x', key, 'a', 'text/plain', bytes),
    )
    expect((await expectProblem(refused, 401, 'token-malformed')).detail).toMatch(/\.$/)
    expect(reason).toBe('detail')
  })
})
