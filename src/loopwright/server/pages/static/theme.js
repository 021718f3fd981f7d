// Before the page is drawn: the theme that was chosen here, if any.
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
