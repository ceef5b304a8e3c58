import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { upload } from '../harness/upload.ts'
import { openStage, type Stage } from './pages.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
  for (let index = 1; index <= 45; index += 1)
    await upload(stage.server, `${index}`, { name: `${index}.txt` })
})
afterAll(() => stage[Symbol.asyncDispose]())

describe('C2 lists on a page of another origin', () => {
  test('K4 TanStack Query lists all items, newest first', async () => {
    await using opened = await stage.open('TanStack Query')
    const { page } = opened
    for (const count of [20, 40]) {
      await expect.poll(() => page.locator('li').count()).toBe(count)
      await page.locator('button').click()
    }
    await expect.poll(() => page.locator('li').count()).toBe(45)
    const names = await page.locator('li').allTextContents()
    expect(names).toEqual(Array.from({ length: 45 }, (_, index) => `${45 - index}.txt`))
    expect(await page.locator('button').isDisabled()).toBe(true)
  })

  test('L2 laravel-vue-pagination shows the pages of the listing and changes between them', async () => {
    await using opened = await stage.open('laravel-vue-pagination')
    const { page } = opened
    const active = () => page.locator('.page-item.active').textContent()
    await expect.poll(() => page.locator('#urls li').count()).toBe(10)
    expect(await active()).toMatch(/^1\b/)
    await page.locator('.page-link', { hasText: /^5/ }).click()
    await expect.poll(() => page.locator('#urls li').count()).toBe(5)
    expect(await active()).toMatch(/^5\b/)
    const last = (await page.locator('#urls li:last-child').textContent()) ?? ''
    expect(await (await fetch(last)).text()).toBe('45')
  })
})
