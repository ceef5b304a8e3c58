import type { Page } from '@mediabucket/client'
import { parse } from '../arguments.ts'
import { UsageError } from '../command.ts'
import { clientCommand } from './client-command.ts'

export const ls = clientCommand({
  summary: 'List what is in the bucket of a service.',
  help: `Usage: mediabucket ls [--page N | --all] [--json]

Prints the URLs of the items, one a line, oldest first.

Options:
  --page N  The page, from 1 on; ten items each. Without it, page 1.
  --all     Every page, one after another.
  --json    Each page as the service answers it, one JSON object a line.`,

  read(args) {
    const { values } = parse('ls', {
      args: [...args],
      options: { page: { type: 'string' }, all: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    const { page, all = false, json = false } = values
    if (all && page !== undefined) throw new UsageError('ls takes --page or --all, not both')
    if (page !== undefined && !isPageNumber(page))
      throw new UsageError(`--page takes a whole number from 1 up, not "${page}"`)
    return { number: Number(page ?? 1), all, json }
  },

  async run({ number, all, json }, { client, output, tell, interrupted }) {
    const signal = AbortSignal.any([interrupted, output.closed])
    const print = (page: Page) =>
      output.write(json ? `${JSON.stringify(page)}\n` : page.data.map((url) => `${url}\n`).join(''))
    if (all) {
      for await (const page of client.pages({ signal })) await print(page)
      return
    }
    const page = await client.listPage(number, { signal })
    await print(page)
    if (!json) tell(`Page ${page.current_page} of ${page.last_page}; ${page.total} items in all.`)
  },
})

const isPageNumber = (text: string): boolean => /^[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text))
