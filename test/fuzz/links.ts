import { runHere } from '../harness/commands.ts'
import { makeToken } from '../harness/token.ts'
import { hostileText, mutate } from './hostile.ts'
import type { Random } from './random.ts'
import { responseTimeout, type Target } from './target.ts'

/** The signed URLs of one item of a private bucket, by server. */
const signedUrls = new WeakMap<Target['instance'], Promise<readonly [string, ...string[]]>>()

async function createUrls({ server }: Target['instance']): Promise<readonly [string, ...string[]]> {
  const { authorization } = await makeToken(server, '--bucket', 'private')
  await runHere(server.data, 'bucket set', 'private', '--private', 'on')
  const post = async (path: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
    (await server.request(path, { method: 'POST', body, headers: { ...headers, authorization } })).text()
  const stored = await post('/api/media', 'private bytes')
  const id = /"id":"(\w+)"/.exec(stored)?.[1] ?? ''
  const create = async (options: object) => {
    const type = { 'content-type': 'application/json' }
    const created = await post(
      `/api/media/${id}/links`,
      // Valid for the longest run.
      JSON.stringify({ expires_in: 86_400, ...options }),
      type,
    )
    const url = /"url":"([^"]+)"/.exec(created)?.[1]
    if (url === undefined) throw new Error(`no link: ${created}`)
    return url.slice(url.indexOf('/media/'))
  }
  return [await create({}), await create({ download: true })]
}

function alteredUrl(random: Random, url: string): string {
  const [path = '', query = ''] = url.split('?')
  const parameters = query.split('&')
  const [at, other] = [random.below(parameters.length), random.below(parameters.length)]
  const own = parameters[at] ?? ''
  const name = own.split('=')[0] ?? ''
  const joined = (changed: readonly string[]) => `${path}?${changed.join('&')}`
  return random.pick([
    mutate(random, Buffer.from(url)).toString('latin1'),
    joined(parameters.with(at, `${name}=${encodeURIComponent(hostileText(random))}`)),
    joined(parameters.with(at, `${name}=${Number(own.split('=')[1]) + random.below(1_000)}`)),
    joined(parameters.with(at, parameters[other] ?? '').with(other, own)),
    joined(parameters.toSpliced(at, 1)),
    joined([...parameters, own]),
    joined([...parameters, `variant=${random.pick(['thumb', 'preview', 'x', ''])}`]),
    joined([...parameters, `${encodeURIComponent(hostileText(random))}=1`]),
    url.replace(/signature=[^&]+/, (text) => (random.oneIn(2) ? text.toUpperCase() : `${text}=`)),
    url.replace('/media/', random.pick(['/media//', '/media/./', '//media/', '/media/%2e/'])),
    path,
  ])
}

/** Only the signed URL itself returns the bytes of an item of a private bucket. */
export async function fuzzLinks({ random, send, instance }: Target): Promise<void> {
  const creating = signedUrls.get(instance) ?? createUrls(instance)
  signedUrls.set(instance, creating)
  const signed = random.pick(await creating)
  const get = (url: string) =>
    send(
      Buffer.from(`GET ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 'latin1'),
      undefined,
      responseTimeout,
    )
  if ((await get(signed))?.status !== 200) throw new Error(`${signed} does not return the bytes`)
  const url = alteredUrl(random, signed).replace(/[\r\n]/g, '')
  if (url === signed) return
  const response = await get(url)
  if (response?.body.includes('private bytes'))
    throw new Error(`the bytes for ${url}, altered from ${signed}`)
}
