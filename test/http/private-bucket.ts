import { runHere } from '../harness/commands.ts'
import { quarters } from '../harness/pictures.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'

/** The shared server with a new private bucket. */
export async function privateBucket(): Promise<SharedServer> {
  const server = await sharedServer()
  await runHere(server.data, 'bucket set', server.bucket, '--private', 'on')
  return server
}

/** The bytes of a PNG that has variants. */
export const smallPicture = async (): Promise<Uint8Array<ArrayBuffer>> =>
  Uint8Array.from(await quarters(64, 64).png().toBuffer())

/** Sends a request without a token, and follows no redirect. */
export const get = (url: string | URL, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(url, { method, headers, redirect: 'manual' })
