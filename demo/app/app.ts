import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { rolldown } from 'rolldown'
import { createIssuer } from './issuer.ts'

/** Names the media service in the tokens of the app. */
const audience = 'urn:example:media'

/** Users and their passwords. A real app has a database, and stores no passwords. */
const users = new Map([
  ['anna', 'anna-password'],
  ['ben', 'ben-password'],
])

export interface App extends AsyncDisposable {
  readonly url: string
  /** The settings with which a media service accepts the users of this app. */
  readonly mediaSettings: Readonly<Record<string, string>>
}

/**
 * Starts the app: it signs in its users with a session cookie, gives them tokens for the media service, and serves the page that uses
 * them. The app itself sends no request to the media service. `mediaUrl` returns the URL of the service.
 */
export async function startApp(port: number, mediaUrl: () => string): Promise<App> {
  const sessions = new Map<string, string>()
  const server = createServer((request, response) => void respond(request, response))
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}`
  const issuer = await createIssuer(url, audience)
  const page = await readFile(join(import.meta.dirname, 'page.html'), 'utf8')
  const script = await bundlePage()

  const userOf = ({ headers }: IncomingMessage): string | undefined =>
    sessions.get(/(?:^|; )session=([\w-]+)/.exec(headers.cookie ?? '')?.[1] ?? '')

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, type: string, body: string, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', ...headers }).end(body)
    const json = (status: number, body: unknown, headers?: Record<string, string>) =>
      send(status, 'application/json', JSON.stringify(body), headers)

    const { pathname } = new URL(request.url ?? '', url)
    switch (`${request.method} ${pathname}`) {
      case 'GET /':
        return void send(200, 'text/html; charset=utf-8', page)
      case 'GET /page.js':
        return void send(200, 'text/javascript', script)
      case 'GET /.well-known/jwks.json':
        return void send(200, 'application/json', issuer.publishedKeys)
      case 'POST /sign-in': {
        const form = new URLSearchParams(await text(request))
        const user = form.get('user') ?? ''
        if (!users.has(user) || users.get(user) !== form.get('password'))
          return void json(401, { error: 'The user or the password is wrong.' })
        const session = randomUUID()
        sessions.set(session, user)
        const cookie = `session=${session}; HttpOnly; SameSite=Strict; Path=/`
        return void json(200, { user }, { 'set-cookie': cookie })
      }
      // Another site cannot read the response, and cannot make the browser send the cookie.
      case 'POST /media-token': {
        const user = userOf(request)
        if (user === undefined) return void json(401, { error: 'Sign in first.' })
        return void json(200, { url: mediaUrl(), token: await issuer.sign(user) })
      }
      default:
        return void json(404, { error: 'There is no such page.' })
    }
  }

  return {
    url,
    mediaSettings: {
      MEDIABUCKET_JWT_ISSUER: url,
      MEDIABUCKET_JWT_JWKS_URL: `${url}/.well-known/jwks.json`,
      MEDIABUCKET_JWT_AUDIENCE: audience,
      MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
      MEDIABUCKET_JWT_BUCKET_OPTIONS: 'private=on',
      MEDIABUCKET_CORS_ORIGINS: url,
      MEDIABUCKET_AUDIT: 'changes',
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The script of the page with the client package, for browsers. */
async function bundlePage(): Promise<string> {
  await using bundle = await rolldown({ input: join(import.meta.dirname, 'page.ts'), platform: 'browser' })
  const { output } = await bundle.generate({ format: 'esm' })
  return output[0].code
}
