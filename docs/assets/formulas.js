/* Typesets what arithmatex has marked: \( … \) in a line, \[ … \] on lines of its own. Material for MkDocs announces each page. */
document$.subscribe(() => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const text = formula.textContent.trim()
    katex.render(text.slice(2, -2), formula, { displayMode: text.startsWith("\\["), throwOnError: false })
  }
})
