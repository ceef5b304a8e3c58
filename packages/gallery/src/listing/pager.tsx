import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { formatHash } from '../router.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { PageJump } from './page-jump.tsx'
import { pageWindow } from './page-window.ts'

/** Links to other pages: a few, however many pages there are. */
export function Pager({ current }: { current: number }) {
  const { listing, router } = useGallery()
  const last = listing.page.value?.last_page ?? 1
  if (last === 1) return null
  const numbers = pageWindow(current, last)
  const go = (page: number) => router.go({ page, item: null })
  return (
    <nav class={numbers.includes(null) ? 'pager' : 'pager few'} aria-label={strings.pager.label}>
      <Step
        icon="previous"
        label={strings.pager.previous}
        onClick={current > 1 ? () => go(Math.min(current - 1, last)) : null}
      />
      <ol class="pager-numbers">
        {numbers.map((page, index) => (
          <li key={page ?? `gap-${index}`}>
            {page === null ? (
              <span class="gap" aria-hidden="true">
                …
              </span>
            ) : (
              <a
                class="page-number"
                href={formatHash({ page, item: null })}
                aria-label={strings.pager.page(page)}
                aria-current={page === current ? 'page' : undefined}
                onClick={(event) => {
                  event.preventDefault()
                  go(page)
                }}
              >
                {formatCount(page)}
              </a>
            )}
          </li>
        ))}
      </ol>
      <PageJump current={current} last={last} />
      <Step icon="next" label={strings.pager.next} onClick={current < last ? () => go(current + 1) : null} />
    </nav>
  )
}

interface StepProps {
  readonly icon: 'previous' | 'next'
  readonly label: string
  /** Null on the first and on the last page. */
  readonly onClick: (() => void) | null
}

/** Not `disabled` at the ends, because a disabled button would lose the keyboard focus. */
function Step({ icon, label, onClick }: StepProps) {
  return (
    <button
      type="button"
      class={`icon-button step ${icon}`}
      aria-label={label}
      title={label}
      aria-disabled={onClick === null}
      onClick={() => onClick?.()}
    >
      <Icon name={icon} />
    </button>
  )
}
