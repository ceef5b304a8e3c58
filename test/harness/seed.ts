import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { runHere } from './commands.ts'
import type { SharedServer } from './server.ts'

const LastLine = Type.Object({ bucket: Type.String(), token: Type.String(), total: Type.Integer() })

/** Fills a bucket with rows while the server is running, and parses the last line of the command. */
export async function seed({ data }: Pick<SharedServer, 'data'>, ...args: string[]) {
  const { printed } = await runHere(data, 'seed', ...args)
  return Value.Parse(LastLine, JSON.parse(printed))
}
