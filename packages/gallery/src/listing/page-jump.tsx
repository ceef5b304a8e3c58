import { useEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { pageNumberOf } from '../routing/hash-route.ts'
import { strings } from '../strings.ts'

/** A field for the number of a page, for buckets with more of them than anybody would click through. */
export function PageJump({ current, last }: { current: number; last: number }) {
  const { router, notices } = useGallery()
  const input = useRef<HTMLInputElement>(null)
  const [bad, setBad] = useState(false)
  useEffect(() => {
    setBad(false)
    if (input.current) input.current.value = String(current)
  }, [current])
  return (
    <form
      class="page-jump"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        const page = pageNumberOf(input.current?.value ?? '')
        const good = page !== null && page <= last
        setBad(!good)
        if (good) router.go({ page, item: null })
        else notices.tell(strings.pager.range(last))
        input.current?.select()
      }}
    >
      <label for="page-jump">{strings.pager.jump}</label>
      <input
        ref={input}
        id="page-jump"
        inputMode="numeric"
        autocomplete="off"
        enterkeyhint="go"
        size={Math.max(3, String(last).length)}
        aria-invalid={bad}
        onFocus={(event) => event.currentTarget.select()}
      />
      <span>{strings.pager.of(last)}</span>
      <button type="submit" class="off-screen">
        {strings.pager.go}
      </button>
    </form>
  )
}
