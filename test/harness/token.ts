import { runHere } from './commands.ts'
import type { SharedServer } from './server.ts'

/** Creates a token as the command does: `makeToken(server, '--bucket', 'b', '--scope', 'media:read')`. */
export async function makeToken({ data }: Pick<SharedServer, 'data'>, ...args: string[]) {
  const { printed: token, reported } = await runHere(data, 'token create', ...args)
  const id = /(?:tok|svc)_\w+/.exec(reported)?.[0] ?? ''
  return { id, token, authorization: `Bearer ${token}` }
}
