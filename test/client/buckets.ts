import { type Client, createClient } from '../../packages/client/src/index.ts'
import type { SharedServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'

/** A token for a new bucket, whose name begins with `name`. */
export const newToken = async (server: Pick<SharedServer, 'data'>, name: string, ...args: string[]) =>
  (await makeToken(server, '--bucket', uniqueName(name), ...args)).token

/** A client with a bucket of its own. */
export const newBucket = async (server: SharedServer, name: string, ...args: string[]): Promise<Client> =>
  createClient({ url: server.url, token: await newToken(server, name, ...args) })

/** The URLs of all items on all pages. */
export async function urlsOf(client: Client): Promise<string[]> {
  const urls: string[] = []
  for await (const url of client.media()) urls.push(url)
  return urls
}

/** The rejection reason of a promise, or its value. */
export const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => error)
