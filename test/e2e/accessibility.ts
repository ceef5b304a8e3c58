import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Visit } from './visit.ts'

const require = createRequire(import.meta.url)
/** Half as long as the code that is not minified. */
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

/** The rules of axe for WCAG 2.2 AA. */
export const wcag = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** The rules among them whose result depends on colours, which are all that differs between light and dark. */
const colourRules = ['color-contrast', 'link-in-text-block']

/** What axe finds on the page, one string for each element. */
export async function violations(page: Page, rules: readonly string[] = wcag): Promise<unknown> {
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe)
  // Only experimental rules, which these are not, examine style sheets that are loaded again.
  const options = { runOnly: rules, resultTypes: ['violations'], preload: { assets: ['media'] } }
  return await page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target + ': ' + failureSummary)))`)
}

/** Asserts that axe finds nothing, and that nothing is outside the screen, on phones and desktops, in light and dark mode. */
export async function expectAccessible(
  { page }: Visit,
  state: string,
  rules: readonly string[] = wcag,
): Promise<void> {
  for (const width of [375, 1440]) {
    await page.setViewportSize({ width, height: width === 375 ? 812 : 900 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const where = `${state} at ${width} pixels, ${colorScheme}`
      const beyond = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      // The page is laid out for another width in its next frame.
      await expect.poll(() => page.evaluate(beyond), { message: where }).toBe(0)
      const wanted = colorScheme === 'light' ? rules : colourRules
      await expect.poll(() => violations(page, wanted), { message: where }).toEqual([])
    }
  }
}
