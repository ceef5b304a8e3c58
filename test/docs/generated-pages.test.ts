import { expect, test } from 'vitest'
import { problemKinds } from '../../packages/server/src/http/problem-kinds.ts'
import { settings } from '../../packages/server/src/service/settings.ts'
import { read } from '../architecture/sources.ts'

const marker = (source: string) =>
  `<!-- What follows is generated from ${source}: \`npm run docs:pages\` updates it. -->\n\n`

/** The hand-written start of a page, and what a source of the service adds to it. */
function generated(page: string, source: string, text: string): string {
  const [frame = '', ...rest] = read(page).split(marker(source))
  expect(rest.length, `${page} contains once: ${marker(source)}`).toBe(1)
  return `${frame}${marker(source)}${text}`
}

test('docs/settings.md has the settings of the service; `npm run docs:pages` updates it', async () => {
  const rows = Object.entries(settings).map(
    ([name, { description, reader, defaultText }]) =>
      `| \`${name}\` | ${defaultText === '' ? '' : `\`${defaultText}\``} | ${description} | ${reader.accepts} |`,
  )
  const table = ['| Name | Default | What it does | Accepts |', '| --- | --- | --- | --- |', ...rows, '']
  const page = generated('docs/settings.md', 'packages/server/src/service/settings.ts', table.join('\n'))
  await expect(page).toMatchFileSnapshot('../../docs/settings.md')
})

test('P2 docs/problems.md has the problems of the service; `npm run docs:pages` updates it', async () => {
  const sections = Object.entries(problemKinds).map(
    ([code, { status, title, cause, cure }]) => `## ${code}\n\n**${status} ${title}.** ${cause}\n\n${cure}\n`,
  )
  const page = generated('docs/problems.md', 'packages/server/src/http/problem-kinds.ts', sections.join('\n'))
  await expect(page).toMatchFileSnapshot('../../docs/problems.md')
})
