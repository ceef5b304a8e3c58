import type { TestServer } from './server.ts'

/** Makes a token with the command, as an operator does: `makeToken(server, '--bucket', 'b', '--scope', 'media:read')`. */
export async function makeToken(server: Pick<TestServer, 'command'>, ...args: string[]) {
  const { stdout, stderr } = await server.command('token', 'create', ...args)
  const token = stdout.trim()
  const id = /tok_\w+/.exec(stderr)?.[0] ?? ''
  return { id, token, authorization: `Bearer ${token}` }
}
