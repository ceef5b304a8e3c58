import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import server from '../packages/server/package.json' with { type: 'json' }
import { commandGroups, type ListedCommand } from '../packages/server/src/cli/commands.ts'
import { exitCodeRows } from '../packages/server/src/cli/help.ts'
import { settingsFile } from '../packages/server/src/service/environment.ts'

/** A text in the language of roff, in which no line is an instruction. */
const roff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&')

/** As it is, without new line breaks. */
const verbatim = (text: string): string => `.nf\n${roff(text)}\n.fi`

async function helpOf(listed: ListedCommand): Promise<string> {
  if ('load' in listed) return (await listed.load()).help
  if ('loadClient' in listed) return (await listed.loadClient()).help
  return (await listed.loadMeta()).help
}

/** Writes the manual page, which consists of what the commands print with `--help`. */
export async function writeManPage(file: string): Promise<void> {
  const parts = [
    `.TH MEDIABUCKET 1 "" "mediabucket ${server.version}" "Mediabucket"`,
    `.SH NAME\nmediabucket \\- ${roff('a self-hosted media bucket')}`,
    `.SH SYNOPSIS\n.B mediabucket\n[\\-\\-env\\-file FILE] COMMAND [OPTIONS]`,
    '.SH DESCRIPTION\nMediabucket stores files that HTTP clients upload, lists them, and serves each at a permanent URL.',
  ]
  for (const { title, commands } of commandGroups) {
    parts.push(`.SH ${roff(title.toUpperCase())}`)
    for (const [name, listed] of Object.entries(commands))
      parts.push(`.SS mediabucket ${roff(name)}`, roff(listed.summary), '.PP', verbatim(await helpOf(listed)))
  }
  parts.push(
    '.SH EXIT STATUS',
    ...exitCodeRows.map(([code, meaning]) => `.TP\n${code}\n${roff(meaning)}`),
    '.SH FILES',
    `.TP\n${roff(settingsFile)}\n${roff('Settings of the service, and of the commands on its data: one NAME=value a line. `mediabucket help settings` lists them.')}`,
  )
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${parts.join('\n')}\n`)
}
