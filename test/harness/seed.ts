import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { TestServer } from './server.ts'

const LastLine = Type.Object({ bucket: Type.String(), token: Type.String(), total: Type.Integer() })

/** Fills a bucket with rows beside the running server, and reads the line that the command prints last. */
export async function seed(server: TestServer, ...args: string[]) {
  const { stdout } = await server.command('seed', ...args)
  return Value.Parse(LastLine, JSON.parse(stdout.trim().split('\n').at(-1) ?? ''))
}
